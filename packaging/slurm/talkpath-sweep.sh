#!/bin/sh
# A sweep as a Slurm job array: one task a part, and a job that merges them when all are done.
#
#     talkpath-sweep.sh SCENARIO.toml PARTS DIR [flags of `talkpath run`, such as --records none]
#     SBATCH_PARTITION=short talkpath-sweep.sh grid.toml 64 /shared/grid --repeat 20
#
# DIR must be seen by all nodes under the same path; so must the program (TALKPATH, or the one on the PATH).
# Slurm queues a task again whose node died. It goes on where it was: its part's folder is DIR/parts/I. A
# program that was killed (SIGKILL, as by a machine without memory) begins again, three times at most. Called
# again with the same DIR, every part that is whole ends at once. The run is DIR/run, byte for byte that of one
# machine. sbatch's own variables (SBATCH_...) choose partition, account and time.
set -eu

if [ $# -lt 3 ]; then
    sed -n '4,5s/^# *//p' "$0" >&2
    exit 2
fi
scenario=$1 parts=$2 dir=$3
shift 3
program=${TALKPATH:-$(command -v talkpath)} || { echo "no program \`talkpath\` on the PATH: set TALKPATH" >&2; exit 2; }
mkdir -p "$dir/parts" "$dir/log"
dir=$(cd "$dir" && pwd)

# The word for a shell that reads it again, whatever is in it.
quote() {
    printf "'"
    printf '%s' "$1" | sed "s/'/'\\\\''/g"
    printf "'"
}

# What changes the scenario goes into the plan; the rest is for every part.
changes= rest=
while [ $# -gt 0 ]; do
    case $1 in
    --set | --seed | --repeat)
        [ $# -gt 1 ] || { echo "$1: a value is missing" >&2; exit 2; }
        changes="$changes $1 $(quote "$2")"
        shift 2
        ;;
    *)
        rest="$rest $(quote "$1")"
        shift
        ;;
    esac
done
eval "set -- $changes"
fresh=$dir/.plan-$$
"$program" plan "$scenario" -o "$fresh" "$@"
if [ ! -e "$dir/plan" ]; then
    mv "$fresh" "$dir/plan"
elif diff -rq "$fresh" "$dir/plan" >/dev/null; then
    rm -r "$fresh"
else
    rm -r "$fresh"
    echo "$dir has the parts of another plan: name another folder" >&2
    exit 2
fi
talkpath=$(quote "$program") plan=$(quote "$dir/plan/scenario.toml")
folders=$(quote "$dir/parts") run=$(quote "$dir/run")

# %A is the array's job, %a the task.
array=$(sbatch --parsable --requeue --array="1-$parts" --cpus-per-task=1 --job-name=talkpath \
    --output="$dir/log/part-%a.log" --open-mode=append --wrap "
    tries=1
    until $talkpath run $plan --shard \"\$SLURM_ARRAY_TASK_ID/$parts\" \
        -o $folders/\"\$SLURM_ARRAY_TASK_ID\" --jobs 1 $rest; do
        code=\$?
        # 128 and the number of SIGKILL.
        if [ \$code -ne 137 ] || [ \$tries -gt 3 ]; then exit \$code; fi
        tries=\$((tries + 1))
    done")
merge=$(sbatch --parsable --dependency="afterany:$array" --cpus-per-task=1 --job-name=talkpath-merge \
    --output="$dir/log/merge.log" --wrap "[ -e $run ] || exec $talkpath merge $folders/* -o $run")
echo "array $array, then merge $merge; logs are in $dir/log, the run will be $dir/run"
