package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/control/controlv1"
	"github.com/quartet-sched/quartet/internal/unixsocket"
)

// answerLimit is how long a client waits for an answer: longer than the server lets a call take.
const answerLimit = callLimit + 5*time.Second

// ErrNotRunning says that no scheduler listens on the socket.
var ErrNotRunning = errors.New("no scheduler is running")

// Client gives orders to a scheduler. What it did wrong is returned as core.Diagnostics.
type Client struct {
	conn  *grpc.ClientConn
	calls controlv1.ControlServiceClient
	spare atomic.Pointer[net.UnixConn] // opened to see whether it can be, until gRPC takes it
}

// Dial opens the socket of a scheduler of this user or of root.
func Dial(ctx context.Context, path string) (*Client, error) {
	first, err := openSocket(ctx, path)
	if err != nil {
		return nil, err
	}
	c := &Client{}
	c.spare.Store(first)
	err = c.connect("passthrough:///localhost", insecure.NewCredentials(), grpc.WithContextDialer(
		func(ctx context.Context, _ string) (net.Conn, error) {
			if conn := c.spare.Swap(nil); conn != nil {
				return conn, nil
			}
			return openSocket(ctx, path)
		}))
	if err != nil {
		return nil, errors.Join(err, first.Close())
	}
	return c, nil
}

func openSocket(ctx context.Context, path string) (*net.UnixConn, error) {
	conn, err := unixsocket.Dial(ctx, path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%w on socket %q", ErrNotRunning, path)
	}
	return conn, err
}

// DialTLS returns a client of the scheduler at a TCP address. The first call opens the connection.
func DialTLS(address string, files TLSFiles) (*Client, error) {
	config, err := files.client()
	if err != nil {
		return nil, err
	}
	c := &Client{}
	return c, c.connect("passthrough:///"+address, credentials.NewTLS(config))
}

func (c *Client) connect(target string, with credentials.TransportCredentials, options ...grpc.DialOption) (err error) {
	c.conn, err = grpc.NewClient(target, append(options,
		grpc.WithTransportCredentials(with),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
	)...)
	if err != nil {
		return err
	}
	c.calls = controlv1.NewControlServiceClient(c.conn)
	return nil
}

// Close ends the connection.
func (c *Client) Close() error {
	err := c.conn.Close()
	if spare := c.spare.Swap(nil); spare != nil {
		err = errors.Join(err, spare.Close())
	}
	return err
}

// call makes a call whose answer is one message.
func call[Q, A any](ctx context.Context, method func(context.Context, Q, ...grpc.CallOption) (A, error), request Q) (A, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	answer, err := method(ctx, request)
	return answer, toCaller(ctx, err)
}

// toCaller words the error of a call, of which an interrupted caller needs no words.
func toCaller(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return fromStatus(err)
}

// Submit hands in a job file, all jobs of it or none, and returns their names.
func (c *Client) Submit(ctx context.Context, f backend.JobFile) ([]string, error) {
	r, err := call(ctx, c.calls.Submit, &controlv1.SubmitRequest{Name: clean(f.Name), Text: f.Text, Dir: []byte(f.Dir)})
	return r.GetJobs(), err
}

// Cancel ends a job.
func (c *Client) Cancel(ctx context.Context, job string) error {
	_, err := call(ctx, c.calls.Cancel, &controlv1.CancelRequest{Job: clean(job)})
	return err
}

// SetHealth drains a node, or makes it ready again.
func (c *Client) SetHealth(ctx context.Context, node string, h core.Health) error {
	_, err := call(ctx, c.calls.SetHealth, &controlv1.SetHealthRequest{Node: clean(node), Health: h.String()})
	return err
}

// Jobs lists the jobs by id, with or without those that have ended, and returns the moment.
func (c *Client) Jobs(ctx context.Context, ended bool) (jobs []*controlv1.Job, nowSeconds float64, err error) {
	stream, err := c.calls.Jobs(ctx, &controlv1.JobsRequest{Ended: ended})
	for err == nil {
		var m *controlv1.JobsResponse
		if m, err = stream.Recv(); err == nil {
			jobs, nowSeconds = append(jobs, m.GetJobs()...), m.GetNowSeconds()
		}
	}
	return jobs, nowSeconds, atEnd(ctx, err)
}

// Nodes lists the nodes in the order of the config.
func (c *Client) Nodes(ctx context.Context) ([]*controlv1.Node, error) {
	r, err := c.Cluster(ctx)
	return r.GetNodes(), err
}

// Cluster lists the nodes as Nodes does, and the pools.
func (c *Client) Cluster(ctx context.Context) (*controlv1.NodesResponse, error) {
	return call(ctx, c.calls.Nodes, &controlv1.NodesRequest{})
}

// Describe returns all that is known of a job, with what was last decided about it.
func (c *Client) Describe(ctx context.Context, job string) (*controlv1.DescribeResponse, error) {
	return call(ctx, c.calls.Describe, &controlv1.DescribeRequest{Job: clean(job)})
}

// ReadLog writes the output of a replica.
func (c *Client) ReadLog(ctx context.Context, l backend.Log, to io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.calls.Logs(ctx, &controlv1.LogsRequest{Job: clean(l.Job), Rank: uint32(l.Rank), Stderr: l.Stderr, Follow: l.Follow})
	if err != nil {
		return toCaller(ctx, err)
	}
	return copyChunks(ctx, stream, to)
}

// WriteSnapshot writes what another scheduler begins from.
func (c *Client) WriteSnapshot(ctx context.Context, to io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.calls.Snapshot(ctx, &controlv1.SnapshotRequest{})
	if err != nil {
		return toCaller(ctx, err)
	}
	return copyChunks(ctx, stream, to)
}

// ErrEarlierVersion says that the scheduler is of a version that does not know the question.
var ErrEarlierVersion = errors.New("the scheduler is of an earlier version of quartet, which cannot answer this")

// SoFar returns the files of the run as they would be if it ended now, by name, and the moment.
func (c *Client) SoFar(ctx context.Context) (files map[string][]byte, nowSeconds float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	files = map[string][]byte{}
	stream, err := c.calls.SoFar(ctx, &controlv1.SoFarRequest{})
	for err == nil {
		var m *controlv1.SoFarResponse
		if m, err = stream.Recv(); err == nil {
			files[m.GetFile()], nowSeconds = append(files[m.GetFile()], m.GetChunk()...), m.GetNowSeconds()
		}
	}
	if status.Code(err) == codes.Unimplemented {
		return nil, 0, ErrEarlierVersion
	}
	return files, nowSeconds, atEnd(ctx, err)
}

type chunk interface{ GetChunk() []byte }

func copyChunks[M chunk](ctx context.Context, stream interface{ Recv() (M, error) }, to io.Writer) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return atEnd(ctx, err)
		}
		if _, err := to.Write(m.GetChunk()); err != nil {
			return err
		}
	}
}

func atEnd(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return toCaller(ctx, err)
}
