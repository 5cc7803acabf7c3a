# The scenarios of Nor, Hassan and Almomani (2010) in ns-2.35 (Debian's ns2), for a comparison beside this study.
#
#   ns nor-2010.tcl KIND FLOWS RATE SIZE DELAY [KEY VALUE]...      prints "second flow kbps" at the bottleneck's far end
#
# KIND is udp, ccid2 or ccid3. KEYs: ssthresh, s (TFRC's segment size, ns-2's default 500), window (TCP's, ns-2's default
# 20), queue (packets, ns-2's default 50), until (s), tcp (0 or 1), cwnd (CCID 2's initial window).

foreach {kind flows rate size delay} [lrange $argv 0 4] break
array set key {ssthresh 65535 s 500 window 20 queue 50 until 100 tcp 1 cwnd 3 packet 1000}
array set key [lrange $argv 5 end]

set ns [new Simulator]
set r1 [$ns node]
set r2 [$ns node]
$ns duplex-link $r1 $r2 2Mb $delay DropTail
$ns queue-limit $r1 $r2 $key(queue)
$ns queue-limit $r2 $r1 $key(queue)

set end $key(until)
# The bottleneck's own record: every packet that the far end receives, by flow.
set out [open "|awk -v end=$end -f [file join [file dirname [info script]] per-second.awk]" w]
$ns trace-queue $r1 $r2 $out

proc pair {} {
    global ns r1 r2
    set from [$ns node]
    set to [$ns node]
    $ns duplex-link $from $r1 10Mb 1ms DropTail
    $ns duplex-link $r2 $to 10Mb 1ms DropTail
    return [list $from $to]
}

if {$key(tcp)} {
    foreach {from to} [pair] break
    set tcp [new Agent/TCP/Newreno]
    $tcp set window_ $key(window)
    $tcp set packetSize_ $key(packet)
    $tcp set fid_ 0
    set sink [new Agent/TCPSink]
    $ns attach-agent $from $tcp
    $ns attach-agent $to $sink
    $ns connect $tcp $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at 0 "$ftp start"
}

for {set n 1} {$n <= $flows} {incr n} {
    foreach {from to} [pair] break
    switch $kind {
        udp {
            set source [new Agent/UDP]
            set target [new Agent/Null]
            # Agent/UDP adds no header of its own.
            $source set packetSize_ $size
        }
        ccid2 - ccid3 {
            set agent [expr {$kind eq "ccid2" ? "Agent/DCCP/TCPlike" : "Agent/DCCP/TFRC"}]
            set source [new $agent]
            set target [new $agent]
            foreach a [list $source $target] {
                $a set packetSize_ $size
                if {$kind eq "ccid2"} {
                    $a set initial_ssthresh_ $key(ssthresh)
                    $a set ssthresh_ $key(ssthresh)
                    $a set initial_cwnd_ $key(cwnd)
                } else {
                    $a set s_s_ $key(s)
                    $a set r_s_ $key(s)
                    $a set s_initial_x_ $key(s)
                }
            }
        }
    }
    $source set fid_ $n
    $target set fid_ [expr {$n + 100}]
    $ns attach-agent $from $source
    $ns attach-agent $to $target
    $ns connect $source $target
    if {$kind ne "udp"} {
        $ns at 0.1 "$target listen"
    }
    set cbr($n) [new Application/Traffic/CBR]
    $cbr($n) attach-agent $source
    $cbr($n) set packetSize_ $size
    $cbr($n) set rate_ $rate
    set begin [expr {20 + 0.2 * ($n - 1)}]
    $ns at $begin "$cbr($n) start"
}

proc finish {} {
    global out
    close $out
    exit 0
}
$ns at $end finish
$ns run
