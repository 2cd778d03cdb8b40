/*
 * tls_settings.h
 *	  The settings of TLS to ZooKeeper.
 */
#ifndef ZKL_SHARED_TLS_SETTINGS_H
#define ZKL_SHARED_TLS_SETTINGS_H

/* As ZklWireTls says it to the session process */
typedef enum ZklTls
{
	ZKL_TLS_OFF,
	ZKL_TLS_VERIFY_CA,
	ZKL_TLS_VERIFY_FULL
} ZklTls;

extern int	zkl_tls;			/* ZklTls */
extern char *zkl_tls_ca_file;
extern char *zkl_tls_cert_file;
extern char *zkl_tls_key_file;

/* Defines all of them, as zkl_settings_define does. */
extern void zkl_tls_settings_define(void);

/* What they lack together, or NULL */
extern const char *zkl_tls_settings_fault(void);

#endif							/* ZKL_SHARED_TLS_SETTINGS_H */
