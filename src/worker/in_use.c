/*
 * in_use.c
 *	  Which settings of the connection are in use, and when others take their place.
 *
 * Owns the settings that are in use.  Runs in the worker only; takes no locks but
 * through identity.c.  It must not know connections, nor how settings are tried.
 *
 * A session can be lost by settings that do not work: so other ones are tried first
 * (trial.c), and until they work, these are used for all connections.  That is also so
 * if a file has changed: a reload tries it, or the next connection does.  Without a
 * session there is nothing to lose, and without settings that could be read nothing
 * to use instead.
 */
#include "postgres.h"

#include "shared/control.h"
#include "shared/settings.h"
#include "worker/attempt.h"
#include "worker/fleet_entry.h"
#include "worker/identity.h"
#include "worker/in_use.h"
#include "worker/reconnects.h"
#include "worker/trial.h"

static ZklConnectSettings *used = NULL;

const ZklConnectSettings *
zkl_in_use_settings(void)
{
	return used;
}

/* The same hosts stay in turn. */
static void
use(ZklConnectSettings *settings)
{
	zkl_trial_end();
	if (used == NULL || strcmp(used->connect_string, settings->connect_string) != 0)
		zkl_hosts_parse(settings->connect_string);
	if (used != NULL)
		zkl_connect_settings_free(used);
	used = settings;
}

/* What was learned of connections with other settings is forgotten. */
static void
change_to(ZklConnectSettings *settings)
{
	use(settings);
	zkl_attempt_start_anew();
	zkl_fleet_entry_renew();
}

void
zkl_in_use_take_wanted(void)
{
	change_to(zkl_connect_settings_read());
}

static bool
is_worth_a_trial(void)
{
	return used != NULL && used->fault == NULL &&
		zkl_control->ctl_status.session_id != 0;
}

bool
zkl_in_use_try(void)
{
	if (!is_worth_a_trial())
		return false;
	zkl_trial_begin();
	return true;
}

bool
zkl_in_use_reload(void)
{
	ZklConnectSettings *wanted = zkl_connect_settings_read();

	if (used != NULL && zkl_connect_settings_equal(used, wanted) &&
		!zkl_reconnects_are_waiting())
	{
		zkl_connect_settings_free(wanted);
		zkl_trial_end();
		zkl_identity_note_settings(used->fault);
		return false;
	}
	zkl_identity_log_anew();
	if (zkl_in_use_try())
	{
		zkl_connect_settings_free(wanted);
		return false;
	}
	change_to(wanted);
	return true;
}

/* The variables are those that are in use, or there would be a trial. */
const char *
zkl_in_use_refresh(void)
{
	ZklConnectSettings *wanted;

	if (zkl_trial_is_pending())
		return used->fault;
	wanted = zkl_connect_settings_read();
	if (zkl_connect_settings_equal(used, wanted))
		zkl_connect_settings_free(wanted);
	else if (used->fault == NULL && (wanted->fault != NULL || is_worth_a_trial()))
	{
		zkl_connect_settings_free(wanted);
		zkl_trial_begin();
	}
	else
		use(wanted);
	if (!zkl_trial_is_pending())
		zkl_identity_note_settings(used->fault);
	return used->fault;
}

/* If what was tried is in use, a new trial would tell nothing new. */
static void
give_up_round(void)
{
	const char *fault = pstrdup(zkl_trial_fault());

	zkl_reconnects_failed(fault);
	if (!zkl_connect_settings_equal(used, zkl_trial_settings()))
	{
		zkl_identity_note_settings(fault);
		if (zkl_trial_fault_is_news())
			zkl_identity_note_error(ZKL_ABOUT_SETTINGS,
									psprintf("new settings of the connection are not used: %s",
											 fault));
		return;
	}
	zkl_trial_end();
	zkl_identity_note_settings(NULL);
	zkl_identity_note_error(ZKL_ABOUT_CONNECTION,
							psprintf("the connection is not replaced: %s", fault));
}

bool
zkl_in_use_tick(int64 now)
{
	switch (zkl_trial_tick(now))
	{
		case ZKL_TRIAL_GOES_ON:
			return false;
		case ZKL_TRIAL_FAILED:
			give_up_round();
			return false;
		case ZKL_TRIAL_WORKS:
			change_to(zkl_trial_take_settings());
			zkl_reconnects_move();
			return true;
	}
	return false;
}
