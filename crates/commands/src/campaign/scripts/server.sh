# Serves a measurement.
#
# Arguments: KEY_BYTES PROGRAM ADDRESS
# Standard input has the key of the server. There is no key if KEY_BYTES is 0.
read_file "$1" "$folder/key"
key_bytes=$1
program=$2
address=$3
set --
test "$key_bytes" -gt 0 && set -- --key-file "$folder/key"
run "$program" serve --bind "$address" "$@"
