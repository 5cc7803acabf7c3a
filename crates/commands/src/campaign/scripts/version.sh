# Prints the version of the program, if all tools are there.
#
# Arguments: PROGRAM TOOL...
program=$1
shift
for tool do
  command -v "$tool" >/dev/null || { echo "error: there is no $tool" >&2; exit 127; }
done
run "$program" --version
