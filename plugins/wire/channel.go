package wire

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// EnvChannel is the variable that names the descriptor of the channel to a plugin.
const EnvChannel = "QUARTET_CHANNEL"

// Channel carries messages over a stream socket that two processes share and nobody else can open: each message after
// its length in bytes, four bytes long, highest first. It costs a write and a read a message, a tenth of what a gRPC stream
// does. Each end is for one goroutine.
type Channel struct {
	conn net.Conn
	out  []byte
	in   []byte // read and not yet taken
	room []byte // that in lies in
}

// lengthBytes is how long the length before a message is.
const lengthBytes = 4

// NewChannel returns the channel over a connection, which it takes over.
func NewChannel(conn net.Conn) *Channel { return &Channel{conn: conn} }

// Close ends the channel, and any wait for it.
func (c *Channel) Close() error { return c.conn.Close() }

// Conn is the connection below.
func (c *Channel) Conn() net.Conn { return c.conn }

// Send writes one message. After an error the channel cannot be used, unless the message was too long: that one is
// ResourceExhausted, and nothing was written.
func (c *Channel) Send(m proto.Message) (err error) {
	c.out = append(c.out[:0], make([]byte, lengthBytes)...)
	if c.out, err = (proto.MarshalOptions{}).MarshalAppend(c.out, m); err != nil {
		return err
	}
	length := len(c.out) - lengthBytes
	if length > MaxMessage {
		return status.Errorf(codes.ResourceExhausted, "trying to send message larger than max (%d vs. %d)", length, MaxMessage)
	}
	binary.BigEndian.PutUint32(c.out, uint32(length))
	_, err = c.conn.Write(c.out)
	return err
}

// Receive reads one message. After an error of the connection, such as a deadline, it can be called again.
func (c *Channel) Receive(m proto.Message) error {
	if err := c.fill(lengthBytes); err != nil {
		return err
	}
	length := int(binary.BigEndian.Uint32(c.in))
	if length > MaxMessage {
		return status.Errorf(codes.ResourceExhausted, "received message larger than max (%d vs. %d)", length, MaxMessage)
	}
	if err := c.fill(lengthBytes + length); err != nil {
		return err
	}
	body := c.in[lengthBytes : lengthBytes+length]
	c.in = c.in[lengthBytes+length:]
	if err := proto.Unmarshal(body, m); err != nil {
		return fmt.Errorf("decode a message: %w", err)
	}
	return nil
}

// leastRead is how much room a read has at least.
const leastRead = 16 << 10

// fill reads until so many bytes are there.
func (c *Channel) fill(bytes int) error {
	if len(c.in) < bytes && cap(c.in) < max(bytes, leastRead) {
		c.room = slices.Grow(c.room[:0], 2*max(bytes, leastRead))[:0]
		c.in = append(c.room, c.in...)
	}
	for len(c.in) < bytes {
		n, err := c.conn.Read(c.in[len(c.in):cap(c.in)])
		if c.in = c.in[:len(c.in)+n]; err != nil && len(c.in) < bytes {
			return err
		}
	}
	return nil
}
