package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// EnvChannel is the variable that names the descriptor of the channel to a plugin.
const EnvChannel = "QUARTET_CHANNEL"

// Frame is an ExchangeRequest or an ExchangeResponse, as the two ends of a channel read and write it: with the message in
// it still to be decoded, and without a copy of it.
type Frame struct {
	Method string // Method is the full name of the call, in requests only.
	Call   uint64 // Call numbers the calls of a channel, from 1.
	Code   uint32 // Code is the gRPC status code of a call that failed, in answers only; 0 for none.
	Error  string // Error is the message of that status.
	// Message is the request or the answer, encoded. That of a received frame is valid until the next one is received.
	Message []byte
}

// The numbers of the fields.
const (
	requestMethod, requestMessage, requestCall                 = 1, 2, 3
	responseMessage, responseCall, responseCode, responseError = 1, 2, 3, 4
)

// Channel carries calls over a stream socket that two processes share and nobody else can open: each frame after its
// length in bytes, four bytes long, highest first. It costs a write and a read a message, a tenth of what a gRPC stream
// does. Each end is for one goroutine.
type Channel struct {
	conn io.ReadWriteCloser
	out  []byte
	in   []byte // read and not yet taken
	room []byte // that in lies in
}

// lengthBytes is how long the length before a frame is.
const lengthBytes = 4

// NewChannel returns the channel over a connection, which it takes over.
func NewChannel(conn io.ReadWriteCloser) *Channel { return &Channel{conn: conn} }

// Close ends the channel, and any wait for it of a connection that can be interrupted.
func (c *Channel) Close() error { return c.conn.Close() }

// SendRequest writes a request. An error with a gRPC status says that it could not be encoded or is too long: nothing was
// written. After any other error the channel cannot be used.
func (c *Channel) SendRequest(method string, call uint64, message proto.Message) error {
	c.begin()
	c.out = protowire.AppendString(protowire.AppendTag(c.out, requestMethod, protowire.BytesType), method)
	c.out = protowire.AppendVarint(protowire.AppendTag(c.out, requestCall, protowire.VarintType), call)
	return c.sendWith(requestMessage, message)
}

// SendAnswer writes the answer to a call, with the same errors as SendRequest.
func (c *Channel) SendAnswer(call uint64, message proto.Message) error {
	c.begin()
	c.out = protowire.AppendVarint(protowire.AppendTag(c.out, responseCall, protowire.VarintType), call)
	return c.sendWith(responseMessage, message)
}

// SendFailure answers a call with an error.
func (c *Channel) SendFailure(call uint64, err error) error {
	s := status.Convert(err)
	c.begin()
	c.out = protowire.AppendVarint(protowire.AppendTag(c.out, responseCall, protowire.VarintType), call)
	c.out = protowire.AppendVarint(protowire.AppendTag(c.out, responseCode, protowire.VarintType), uint64(s.Code()))
	c.out = protowire.AppendString(protowire.AppendTag(c.out, responseError, protowire.BytesType), s.Message())
	return c.send()
}

// ReceiveRequest reads a request. After an error of the connection, such as a deadline, it can be called again.
func (c *Channel) ReceiveRequest(f *Frame) error {
	return c.receive(func(number protowire.Number, n uint64, text []byte) {
		switch number {
		case requestMethod:
			f.Method = string(text)
		case requestMessage:
			f.Message = text
		case requestCall:
			f.Call = n
		}
	}, f)
}

// ReceiveAnswer reads an answer, with the same errors as ReceiveRequest.
func (c *Channel) ReceiveAnswer(f *Frame) error {
	return c.receive(func(number protowire.Number, n uint64, text []byte) {
		switch number {
		case responseMessage:
			f.Message = text
		case responseCall:
			f.Call = n
		case responseCode:
			f.Code = uint32(n)
		case responseError:
			f.Error = string(text)
		}
	}, f)
}

func (c *Channel) begin() { c.out = append(c.out[:0], 0, 0, 0, 0) }

// sendWith sends what was begun with a message as its last field.
func (c *Channel) sendWith(number protowire.Number, message proto.Message) (err error) {
	options := proto.MarshalOptions{}
	size := options.Size(message)
	c.out = protowire.AppendVarint(protowire.AppendTag(c.out, number, protowire.BytesType), uint64(size))
	options.UseCachedSize = true
	if c.out, err = options.MarshalAppend(c.out, message); err != nil {
		return status.Errorf(codes.Internal, "encode a message: %v", err)
	}
	return c.send()
}

func (c *Channel) send() error {
	length := len(c.out) - lengthBytes
	if length > MaxMessage {
		return status.Errorf(codes.ResourceExhausted, "trying to send message larger than max (%d vs. %d)", length, MaxMessage)
	}
	binary.BigEndian.PutUint32(c.out, uint32(length))
	_, err := c.conn.Write(c.out)
	return err
}

func (c *Channel) receive(field func(number protowire.Number, n uint64, text []byte), f *Frame) error {
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
	*f = Frame{}
	return fields(body, field)
}

// fields reads the fields of an encoded message that are numbers or bytes, and skips all others.
func fields(body []byte, field func(number protowire.Number, n uint64, text []byte)) error {
	for len(body) > 0 {
		number, kind, length := protowire.ConsumeTag(body)
		if length < 0 {
			return fmt.Errorf("decode a frame: %w", protowire.ParseError(length))
		}
		body = body[length:]
		var n uint64
		var text []byte
		switch kind {
		case protowire.VarintType:
			n, length = protowire.ConsumeVarint(body)
		case protowire.BytesType:
			text, length = protowire.ConsumeBytes(body)
		default:
			length = protowire.ConsumeFieldValue(number, kind, body)
		}
		if length < 0 {
			return fmt.Errorf("decode a frame: %w", protowire.ParseError(length))
		}
		body = body[length:]
		field(number, n, text)
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
