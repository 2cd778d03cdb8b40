/*
 * statement.h
 *	  What is done before and after each statement of a backend that holds locks.
 */
#ifndef ZKL_BACKEND_STATEMENT_H
#define ZKL_BACKEND_STATEMENT_H

/* Puts the hooks in place; called once, while preloading. */
extern void zkl_statement_init(void);

/* The transaction is over: whether its COMMIT AND CHAIN begins a block is known. */
extern void zkl_statement_end_transaction(bool committed);

#endif							/* ZKL_BACKEND_STATEMENT_H */
