# From ns-2's trace of a link: kb/s received in each second by flow, bytes as ns-2 counts a packet, and drops.
$1 == "r" { bits[int($2), $8] += $6 * 8; seen[$8] = 1 }
$1 == "d" { drops[$8]++ }
END {
    for (flow in seen) {
        for (second = 0; second < end; second++) print second, flow, bits[second, flow] / 1000
        print "drops", flow, drops[flow] + 0
    }
}
