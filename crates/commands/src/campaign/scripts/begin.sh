# The beginning of every script that the coordinator of a campaign runs on a host.
#
# Arguments: LIMIT GRACE ARGUMENT...
#   LIMIT     the script is stopped after this many seconds
#   GRACE     a command that is stopped is killed after this many seconds
#   ARGUMENT  is an argument of the part of the script that follows
#
# Standard input has the files of the script, and then stays open while the coordinator runs. When standard
# input ends, the script stops. So no command outlives the coordinator, even if the coordinator is killed.
#
# $folder is an empty folder, which is removed at the end. File descriptor 3 is the script's standard input.
umask 077
limit=$1
grace=$2
shift 2
failed=9
awaited=
timer=
watcher=
folder=$(mktemp -d) || exit "$failed"
trap 'kill $timer $watcher 2>/dev/null; rm -rf "$folder"' EXIT

# Ends the script, and before it the process that the script waits for.
halt() {
  trap : HUP INT TERM
  if test -n "$awaited"; then
    ( kill "$awaited"; sleep "$grace"; kill -9 "$awaited" ) </dev/null >/dev/null 2>&1 3<&- &
    killer=$!
    wait "$awaited"
    kill "$killer" 2>/dev/null
  fi
  exit "$failed"
}
trap halt HUP INT TERM

# The timer stops the script after the limit.
( sleeper=; trap 'kill $sleeper; exit' TERM; sleep "$limit" & sleeper=$!; wait "$sleeper"; kill "$$" ) </dev/null >/dev/null 2>&1 &
timer=$!
exec 3<&0

# wait_for PID: waits for a process, and returns its exit code. A signal ends the wait (halt).
wait_for() {
  awaited=$1
  wait "$1"
  code=$?
  awaited=
  return "$code"
}

# read_file BYTES FILE: copies this many bytes of standard input to a file. dd reads blocks of one byte, because
# a larger block could take bytes that belong to the next file.
read_file() {
  dd bs=1 count="$1" of="$2" <&3 2>/dev/null &
  wait_for "$!"
}

# run COMMAND...: runs a command, and returns its exit code. The end of standard input stops the command.
run() {
  "$@" </dev/null 3<&- &
  command_pid=$!
  ( cat >/dev/null; kill "$$" ) <&3 >/dev/null 2>&1 3<&- &
  watcher=$!
  exec 3<&-
  wait_for "$command_pid"
}

