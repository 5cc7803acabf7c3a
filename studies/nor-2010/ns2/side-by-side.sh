#!/bin/sh
# A call's packets by the second from the 20th on, in ns-2 and here, for initial thresholds of 20, 50 and 100 packets.
#
#   side-by-side.sh [TALKPATH]      needs ns (Debian's ns2); TALKPATH is the program, `talkpath` by default
set -eu
talkpath=${1:-talkpath}
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# Counts of a list of seconds, from the 20th to the 47th, and of all of them.
row='{ n[$1] += $2; all += $2 } END { printf "%-12s", name; for (s = 20; s < 48; s++) printf "%4d", n[s]; printf "%6d\n", all }'

for threshold in 20 50 100; do
    echo "threshold $threshold"
    # A packet of the call has 192.8 B on the mean in ns-2: 160 B, IP and DCCP with its options.
    ns "$here/nor-2010.tcl" ccid2 1 64k 160 300ms ssthresh $threshold |
        awk '$1 != "drops" && $2 == 1 { printf "%d %d\n", $1, $3 * 1000 / 8 / 192.8 + 0.5 }' | awk -v name=ns-2 "$row"
    for growth in each-packet half; do
        "$talkpath" run "$here/../call.toml" --set flow.call.transport.growth=$growth \
            --set "flow.call.transport.initial_ssthresh=$threshold packets" --out "$out/$threshold-$growth" --quiet >"$out/table"
        "$talkpath" export "$out/$threshold-$growth"/* --format csv |
            awk -F, '$3 == "call" && $10 != "" { printf "%d 1\n", $10 / 1e9 }' | awk -v name=$growth "$row"
    done
done
