# Measures, and writes the run directory to standard output as a tar stream.
#
# Arguments: SCENARIO_BYTES KEY_BYTES PROGRAM FLAG...
# Standard input has the scenario, then the key of the far server. There is no key if KEY_BYTES is 0.
read_file "$1" "$folder/scenario.toml"
read_file "$2" "$folder/key"
key_bytes=$2
program=$3
shift 3
test "$key_bytes" -gt 0 && set -- "$@" --key-file "$folder/key"
mkdir "$folder/out" || exit "$failed"
# A repetition that the machine disturbs is not run again.
export TALKPATH_RUN_AGAIN=0s
run "$program" run "$folder/scenario.toml" --out "$folder/out" --rounds --quiet "$@" >/dev/null
run_code=$?
tar -C "$folder/out" -cf - . &
wait_for "$!"
exit "$run_code"
