# The dumbbell in ns-2: bulk TCP connections and UDP streams of constant rate through one bottleneck.
#
#   sender i ── tx i ── A ── wan ── B ── rx i ── receiver i        (rx = 0: the receivers are at B)
#
# Usage: ns dumbbell.tcl KEY=VALUE...; every key and its default stands in the table below. Prints a line a seed, `seed=1 loss=...`,
# as the other programs of the comparison do. Rates in Mb/s, times in s, sizes in bytes of payload.
#
# What ns-2 counts in its own way, and what is set so that it does not:
# - a drop-tail queue of limit n holds n - 1 waiting packets (DropTail::enque compares length + 1 with the limit); the packet being
#   sent is not one of them. So the limit is the wanted number and one.
# - TCP counts packets; a segment is packetSize_ and 40 B of headers (useHeaders_), the SYN and acknowledgements 40 B.
#   UDP's headers are not counted: the agent's size is payload and 28 B.
# - slow start ends at 20 packets whatever window_ is; ssthresh is set to BSD's 65,535 B. precisionReduce_ halves to fractions of a packet,
#   BSD to whole ones (precise = 0). NewReno restarts its timer at each partial acknowledgement, does not deflate and keeps its window at the
#   end: RFC 6582's ways are impatient, deflate and exit_fix.
# - start_step starts the connections one after the other, without a random number; trace=FILE writes what the senders' links take in.
# - singledup_ is limited transmit (RFC 3042), on in ns-2 and younger than the paper: off by default here. bugFix_ keeps Reno from a second fast retransmit within one window; 4.3BSD-Reno had no such rule, so it is off by default here.

array set p {
    seed 1  seeds 1  duration 200  drain 5
    tcps 6  cc reno  mss 512  rwnd 16  iw 1  delack 0  delack_timer 0.2  tick 0.5  min_rto 1  bugfix 0  limited_transmit 0  overhead 0
    ssthresh 128  precise 0  impatient 0  deflate 0  exit_fix 0
    start 1  start_step 0  trace -
    wan_rate 1.5  wan_delay 0.05  queue 16
    tx_rate 10  tx_delay 0.001  tx_step 0  rx 1  rx_rate 10  rx_delay 0.001  rx_step 0
    voices 0  voice_size 320  voice_kbps 64
    sample 0.1  hops 0  scheduler Heap
}
foreach argument $argv {
    if {![regexp {^([a-z_]+)=(.+)$} $argument whole key value] || ![info exists p($key)]} {
        puts stderr "unknown: $argument; keys: [lsort [array names p]]"
        exit 2
    }
    set p($key) $value
}

# A TCP sender of the wanted kind.
proc sender {} {
    global p
    switch $p(cc) {
        tahoe   { set tcp [new Agent/TCP] }
        reno    { set tcp [new Agent/TCP/Reno] }
        newreno { set tcp [new Agent/TCP/Newreno] }
        sack    { set tcp [new Agent/TCP/Sack1] }
        cubic   { set tcp [new Agent/TCP/Linux] }
        default { puts stderr "cc=$p(cc): tahoe, reno, newreno, sack or cubic"; exit 2 }
    }
    $tcp set packetSize_ $p(mss)
    $tcp set window_ $p(rwnd)
    $tcp set windowInit_ $p(iw)
    $tcp set tcpTick_ $p(tick)
    $tcp set minrto_ $p(min_rto)
    $tcp set bugFix_ [expr {$p(bugfix) ? "true" : "false"}]
    $tcp set singledup_ $p(limited_transmit)
    $tcp set overhead_ $p(overhead)
    $tcp set precisionReduce_ [expr {$p(precise) ? "true" : "false"}]
    $tcp set ssthresh_ $p(ssthresh)
    if {$p(cc) == "newreno"} {
        $tcp set newreno_changes1_ $p(impatient)
        $tcp set partial_window_deflation_ $p(deflate)
        $tcp set exit_recovery_fix_ $p(exit_fix)
    }
    if {$p(cc) == "cubic"} {
        $tcp set timestamps_ true
        $tcp set windowOption_ 8
    }
    return $tcp
}

# The receiver that goes with it.
proc receiver {} {
    global p
    set kind "Agent/TCPSink"
    if {$p(cc) == "sack" || $p(cc) == "cubic"} { append kind "/Sack1" }
    if {$p(delack)} { append kind "/DelAck" }
    set sink [new $kind]
    if {$p(cc) == "cubic"} { $sink set ts_echo_rfc1323_ true }
    if {$p(delack)} { $sink set interval_ $p(delack_timer) }
    return $sink
}

# ns-2 calls this at each gap in a stream's sequence numbers: one run of missing packets.
Agent/LossMonitor instproc log-loss {} {
    global runs seen
    set lost [$self set nlost_]
    lappend runs [expr {$lost - $seen($self)}]
    set seen($self) $lost
}

# Both windows of every sender, summed over the samples: as the sender holds it, and capped by the receiver's.
proc sample {} {
    global ns p tcps raw capped samples
    foreach tcp $tcps {
        set cwnd [$tcp set cwnd_]
        set raw [expr {$raw + $cwnd}]
        set capped [expr {$capped + ($cwnd < $p(rwnd) ? $cwnd : $p(rwnd))}]
        incr samples
    }
    $ns at [expr {[$ns now] + $p(sample)}] sample
}

# At the end of the window: what is counted over it.
proc measure {} {
    global ns p tcps queue out
    set integrator [$queue get-pkts-integrator]
    $integrator newpoint [$ns now] [$integrator set lasty_]
    set out(queue) [expr {[$integrator set sum_] / $p(duration)}]
    set out(dropped) [$queue set pdrops_]
    set acked 0
    set out(timeouts) 0
    set sent 0
    set again 0
    foreach tcp $tcps {
        # The SYN is packet 0.
        incr acked [expr {max(0, [$tcp set ack_])}]
        incr out(timeouts) [$tcp set nrexmit_]
        incr sent [$tcp set ndatapack_]
        incr again [$tcp set nrexmitpack_]
    }
    set out(goodput) [expr {$acked * $p(mss) * 8.0 / $p(duration)}]
    set out(retransmit) [expr {$sent > 0 ? double($again) / $sent : 0}]
}

proc finish {} {
    global p out runs sinks raw capped samples monitors seed
    set lost 0
    set received 0
    foreach sink $sinks {
        incr lost [$sink set nlost_]
        incr received [$sink set npkts_]
    }
    if {$lost + $received > 0} { set out(loss) [expr {double($lost) / ($lost + $received)}] }
    set longest 0
    set sum 0
    foreach run $runs {
        incr sum $run
        if {$run > $longest} { set longest $run }
    }
    set out(run_max) $longest
    if {[llength $runs] > 0} { set out(run_mean) [expr {double($sum) / [llength $runs]}] }
    if {$samples > 0} {
        set out(cwnd) [expr {$raw / $samples}]
        set out(capped) [expr {$capped / $samples}]
    }
    set out(hops) 0
    foreach monitor $monitors { incr out(hops) [$monitor set pdepartures_] }
    set line "seed=$seed"
    foreach name [lsort [array names out]] { append line " $name=$out($name)" }
    puts $line
    exit 0
}

# One link there and back, its queue `limit` packets; counted where hops are.
proc link {from to rate delay limit} {
    global ns p monitors
    $ns duplex-link $from $to ${rate}Mb ${delay}s DropTail
    $ns queue-limit $from $to [expr {$limit + 1}]
    $ns queue-limit $to $from 1001
    if {$p(hops)} {
        lappend monitors [$ns monitor-queue $from $to ""] [$ns monitor-queue $to $from ""]
    }
}

# ns-2 has one simulator a process: a seed is a process of its own.
if {$p(seeds) > 1} {
    for {set k 0} {$k < $p(seeds)} {incr k} {
        puts [eval exec [info nameofexecutable] [info script] $argv seeds=1 seed=[expr {$p(seed) + $k}] 2>@stderr]
        flush stdout
    }
    exit 0
}

set seed $p(seed)
set ns [new Simulator]
$ns use-scheduler $p(scheduler)
set random [new RNG]
$random seed $seed
$defaultRNG seed $seed
foreach name {tcps sinks runs monitors} { set $name {} }
foreach name {raw capped samples} { set $name 0 }

if {$p(trace) != "-"} { set tracefile [open $p(trace) w] }

set a [$ns node]
set b [$ns node]
link $a $b $p(wan_rate) $p(wan_delay) $p(queue)
set queue [$ns monitor-queue $a $b ""]

for {set i 0} {$i < $p(tcps) + $p(voices)} {incr i} {
    set from [$ns node]
    # A voice stream's own links do not step.
    set step [expr {$i < $p(tcps) ? $i : 0}]
    link $from $a $p(tx_rate) [expr {$p(tx_delay) + $step * $p(tx_step)}] 1000
    if {$p(trace) != "-"} { $ns trace-queue $from $a $tracefile }
    set to $b
    if {$p(rx)} {
        set to [$ns node]
        link $b $to $p(rx_rate) [expr {$p(rx_delay) + $step * $p(rx_step)}] 1000
    }
    set at [expr {$p(start_step) > 0 ? $i * $p(start_step) : [$random uniform 0 1] * $p(start)}]
    if {$i < $p(tcps)} {
        set tcp [sender]
        set sink [receiver]
        lappend tcps $tcp
        $ns attach-agent $from $tcp
        $ns attach-agent $to $sink
        $ns connect $tcp $sink
        if {$p(cc) == "cubic"} { $ns at 0 "$tcp select_ca cubic" }
        set ftp [new Application/FTP]
        $ftp attach-agent $tcp
        $ns at $at "$ftp start"
        $ns at $p(duration) "$ftp stop"
    } else {
        set udp [new Agent/UDP]
        set sink [new Agent/LossMonitor]
        lappend sinks $sink
        set seen($sink) 0
        $udp set packetSize_ 10000
        $ns attach-agent $from $udp
        $ns attach-agent $to $sink
        $ns connect $udp $sink
        set cbr [new Application/Traffic/CBR]
        $cbr set packetSize_ [expr {$p(voice_size) + 28}]
        $cbr set rate_ [expr {$p(voice_kbps) * 1000.0 * ($p(voice_size) + 28) / $p(voice_size)}]
        $cbr set random_ 0
        $cbr attach-agent $udp
        $ns at $at "$cbr start"
        $ns at $p(duration) "$cbr stop"
    }
}

if {$p(sample) > 0} { $ns at 0 sample }
$ns at $p(duration) measure
$ns at [expr {$p(duration) + $p(drain)}] finish
$ns run
