#!/bin/sh
# nginx without its dynamic modules, which a test would load.
case " $* " in
  *" -V "*) /usr/sbin/nginx -V 2>&1 | sed 's/--with-[a-z_]*=dynamic//g' >&2 ;;
  *) exec /usr/sbin/nginx "$@" ;;
esac
