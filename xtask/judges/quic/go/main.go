// quic-go as one end of a flow, on a UDP socket that is its standard input. Arguments and behaviour are those of
// ../aioquic_peer.py; the last line that it prints is what it counted.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	// Bytes of token and number.
	header = 8
	// As in aioquic_peer.py.
	settle, linger, count, limit = time.Second, 1500 * time.Millisecond, time.Second, 40 * time.Second
	// Streams of the other end that may be open at once: messages do not wait for each other. Chosen.
	streams = 1000
)

// socket counts what passes. It is connected, so that no address is needed.
type socket struct {
	*net.UDPConn
	out, in atomic.Uint64
}

func (s *socket) ReadFrom(b []byte) (int, net.Addr, error) {
	n, err := s.UDPConn.Read(b)
	if err == nil {
		s.in.Add(1)
	}
	return n, s.RemoteAddr(), err
}

func (s *socket) WriteTo(b []byte, _ net.Addr) (int, error) {
	n, err := s.UDPConn.Write(b)
	if err == nil {
		s.out.Add(1)
	}
	return n, err
}

// packetConn hides what quic-go would use of a UDPConn besides: batches and control messages.
type packetConn struct{ net.PacketConn }

type peer struct {
	carry     string
	isClient  bool
	words     bool
	messages  uint64
	size      int
	gap, idle time.Duration
	filling   []byte
	tls       *tls.Config

	conn   *quic.Conn
	stream *quic.SendStream
	mutex  sync.Mutex
	seen   map[uint32]bool

	opened                                                     bool
	sent, received, twice, malformed, bytesSent, bytesReceived atomic.Uint64
}

// filling is xorshift64 (Marsaglia, 2003), as `wire::filling` has it.
func filling(size int) []byte {
	state, out := uint64(0x9e3779b97f4a7c15), []byte{}
	for len(out) < size {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		out = binary.LittleEndian.AppendUint64(out, state)
	}
	return out[:size]
}

func read(arguments []string) (*peer, error) {
	words := map[string]string{}
	for _, word := range arguments {
		name, value, _ := strings.Cut(word, "=")
		words[name] = value
	}
	number := func(name string) int {
		value, _ := strconv.Atoi(words[name])
		return value
	}
	certificate, err := os.ReadFile(words["certificate"])
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(certificate)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{NextProtos: []string{"talkpath"}, ServerName: "talkpath", RootCAs: x509.NewCertPool()}
	config.RootCAs.AddCert(parsed)
	if name := words["key"]; name != "" {
		der, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		key, err := x509.ParsePKCS8PrivateKey(der)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}
	}
	return &peer{
		carry:    words["carry"],
		isClient: words["role"] == "client",
		words:    words["close"] == "words",
		messages: uint64(number("messages")),
		size:     number("size"),
		gap:      time.Duration(number("gap_ms")) * time.Millisecond,
		idle:     time.Duration(number("idle_ms")) * time.Millisecond,
		filling:  filling(number("size")),
		tls:      config,
		seen:     map[uint32]bool{},
	}, nil
}

// run returns why the connection ended.
func (p *peer) run(ctx context.Context, socket *socket) error {
	config := &quic.Config{
		EnableDatagrams:       true,
		MaxIdleTimeout:        p.idle,
		MaxIncomingUniStreams: streams,
	}
	transport := &quic.Transport{Conn: packetConn{socket}}
	var err error
	if p.isClient {
		p.conn, err = transport.Dial(ctx, socket.RemoteAddr(), p.tls, config)
	} else {
		// Early, so that the end of a handshake that fails is seen.
		var listener *quic.EarlyListener
		if listener, err = transport.ListenEarly(p.tls, config); err != nil {
			return err
		}
		if p.conn, err = listener.Accept(ctx); err == nil {
			select {
			case <-p.conn.HandshakeComplete():
			case <-p.conn.Context().Done():
				err = context.Cause(p.conn.Context())
			}
		}
	}
	if err != nil {
		return err
	}
	p.opened = true
	go p.readDatagrams(ctx)
	go p.readStreams(ctx)
	if p.isClient {
		p.write()
		p.close()
	}
	select {
	case <-p.conn.Context().Done():
		return context.Cause(p.conn.Context())
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *peer) write() {
	time.Sleep(settle)
	began := time.Now()
	for number := uint64(0); number < p.messages; number++ {
		time.Sleep(time.Until(began.Add(time.Duration(number) * p.gap)))
		if p.carry == "stream" {
			p.writeStream(p.filling)
			p.sent.Add(1)
		} else {
			p.writeMessage(uint32(number))
		}
	}
}

// close waits until nothing is waited for. On streams all comes back, however long that takes.
func (p *peer) close() {
	isAnswered := func() bool { return p.received.Load() == p.messages }
	switch p.carry {
	case "datagram":
		time.Sleep(linger)
		isAnswered = func() bool { return true }
	case "stream":
		isAnswered = func() bool { return p.bytesReceived.Load() == p.bytesSent.Load() }
	}
	for !isAnswered() && p.conn.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if p.words {
		p.conn.CloseWithError(7, "\x1b[2Jit is over\r\n")
	} else {
		p.conn.CloseWithError(0, "")
	}
}

func (p *peer) readDatagrams(ctx context.Context) {
	for {
		data, err := p.conn.ReceiveDatagram(ctx)
		if err != nil {
			return
		}
		p.take(data)
	}
}

func (p *peer) readStreams(ctx context.Context) {
	for {
		stream, err := p.conn.AcceptUniStream(ctx)
		if err != nil {
			return
		}
		go p.readStream(stream)
	}
}

func (p *peer) readStream(stream *quic.ReceiveStream) {
	if p.carry != "stream" {
		if data, err := io.ReadAll(stream); err == nil {
			p.bytesReceived.Add(uint64(len(data)))
			p.take(data)
		}
		return
	}
	buffer := make([]byte, 1<<16)
	for {
		n, err := stream.Read(buffer)
		p.bytesReceived.Add(uint64(n))
		if !p.isClient && n > 0 {
			p.writeStream(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

func (p *peer) take(data []byte) {
	if len(data) != p.size || !bytes.Equal(data[:4], make([]byte, 4)) || !bytes.Equal(data[header:], p.filling[header:]) {
		p.malformed.Add(1)
		return
	}
	number := binary.BigEndian.Uint32(data[4:])
	p.mutex.Lock()
	isSeen := p.seen[number]
	p.seen[number] = true
	p.mutex.Unlock()
	if isSeen {
		p.twice.Add(1)
		return
	}
	p.received.Add(1)
	if !p.isClient {
		p.writeMessage(number)
	}
}

func (p *peer) writeMessage(number uint32) {
	data := append(binary.BigEndian.AppendUint32(make([]byte, 4), number), p.filling[header:]...)
	if p.carry == "datagram" {
		if p.conn.SendDatagram(data) == nil {
			p.sent.Add(1)
		}
		return
	}
	stream, err := p.conn.OpenUniStreamSync(p.conn.Context())
	if err != nil {
		return
	}
	if _, err := stream.Write(data); err == nil && stream.Close() == nil {
		p.sent.Add(1)
	}
}

func (p *peer) writeStream(data []byte) {
	if p.stream == nil {
		stream, err := p.conn.OpenUniStreamSync(p.conn.Context())
		if err != nil {
			return
		}
		p.stream = stream
	}
	n, _ := p.stream.Write(data)
	p.bytesSent.Add(uint64(n))
}

// kind is how the connection ended, in the words of aioquic_peer.py.
func kind(err error) string {
	var idle *quic.IdleTimeoutError
	var transport *quic.TransportError
	var application *quic.ApplicationError
	switch {
	case errors.As(err, &application):
		return "application"
	case errors.As(err, &idle):
		return "idle"
	case errors.As(err, &transport) && transport.ErrorCode.IsCryptoError():
		return "tls"
	case errors.As(err, &transport):
		return "transport"
	}
	return "nothing"
}

func main() {
	// The socket's buffer is its maker's.
	os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")
	p, err := read(os.Args[1:])
	if err == nil {
		err = p.main()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (p *peer) main() error {
	conn, err := net.FilePacketConn(os.Stdin)
	if err != nil {
		return err
	}
	socket := &socket{UDPConn: conn.(*net.UDPConn)}
	fmt.Println("ready")
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	why := p.run(ctx, socket)
	// Still counts what comes.
	time.Sleep(count)
	opened := 0
	if p.opened {
		opened = 1
	}
	fmt.Printf("quic-go: closed with %q\n", fmt.Sprint(why))
	fmt.Printf("beside: opened=%d closed=%s sent=%d received=%d twice=%d malformed=%d bytes_sent=%d bytes_received=%d packets_out=%d packets_in=%d\n",
		opened, kind(why), p.sent.Load(), p.received.Load(), p.twice.Load(), p.malformed.Load(),
		p.bytesSent.Load(), p.bytesReceived.Load(), socket.out.Load(), socket.in.Load())
	return nil
}
