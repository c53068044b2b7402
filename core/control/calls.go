package control

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/control/controlv1"
	"github.com/quartet-sched/quartet/core/workload"
)

const (
	jobsPerMessage = 500
	chunkBytes     = 64 << 10
	maxRank        = 1 << 20
)

// Submit hands a job file to the backend.
func (s *Server) Submit(ctx context.Context, r *controlv1.SubmitRequest) (*controlv1.SubmitResponse, error) {
	dir := string(r.GetDir())
	if !filepath.IsAbs(dir) || strings.ContainsRune(dir, 0) {
		return nil, invalid("working folder %q is not an absolute path", dir)
	}
	names, err := s.backend.Submit(ctx, backend.JobFile{Name: r.GetName(), Text: r.GetText(), Dir: filepath.Clean(dir)})
	if err != nil {
		return nil, err
	}
	s.board.expect(names)
	return &controlv1.SubmitResponse{Jobs: names}, nil
}

// Cancel ends a job.
func (s *Server) Cancel(ctx context.Context, r *controlv1.CancelRequest) (*controlv1.CancelResponse, error) {
	if err := s.order(ctx, r.GetJob(), func() error { return s.backend.Cancel(ctx, r.GetJob()) }); err != nil {
		return nil, err
	}
	return &controlv1.CancelResponse{}, nil
}

// order tells of a job that neither the backend nor the board knows which one may have been meant, unless the backend did.
// It is asked first, for it may remember jobs that the board forgot.
func (s *Server) order(ctx context.Context, job string, do func() error) error {
	if !workload.PlainName(job) { // and nothing that leads elsewhere
		return s.unknownJob(job)
	}
	err := do()
	if _, told := errors.AsType[core.Diagnostics](err); told || err == nil || ctx.Err() != nil {
		return err
	}
	if _, _, _, known := s.board.find(job); !known {
		return s.unknownJob(job)
	}
	return err
}

func (s *Server) unknownJob(job string) error {
	return core.UnknownName("job", job, "", s.board.jobNames(suggestFrom))
}

// SetHealth drains a node, or makes it ready again.
func (s *Server) SetHealth(ctx context.Context, r *controlv1.SetHealthRequest) (*controlv1.SetHealthResponse, error) {
	var health core.Health
	switch r.GetHealth() {
	case core.Ready.String():
		health = core.Ready
	case core.Draining.String():
		health = core.Draining
	default:
		return nil, invalid("a node cannot be made %q; valid values: %s, %s", r.GetHealth(), core.Ready, core.Draining)
	}
	if !s.board.hasNode(r.GetNode()) {
		return nil, core.UnknownName("node", r.GetNode(), "", s.board.nodeNames())
	}
	if err := s.backend.SetHealth(ctx, r.GetNode(), health); err != nil {
		return nil, err
	}
	return &controlv1.SetHealthResponse{}, nil
}

// Jobs lists the jobs on the board, and last those that no round has seen.
func (s *Server) Jobs(r *controlv1.JobsRequest, to grpc.ServerStreamingServer[controlv1.JobsResponse]) error {
	if err := s.caughtUp(to.Context()); err != nil {
		return err
	}
	coming := s.coming(to.Context()) // asked first: what comes meanwhile is on the board
	jobs, expected, now := s.board.list(r.GetEnded())
	m := &controlv1.JobsResponse{NowSeconds: s.now(now)}
	add := func(j *controlv1.Job) (err error) {
		if m.Jobs = append(m.Jobs, j); len(m.Jobs) == jobsPerMessage {
			err = to.Send(m)
			m = &controlv1.JobsResponse{NowSeconds: m.NowSeconds}
		}
		return err
	}
	for _, f := range jobs {
		if err := add(s.board.render(f, m.NowSeconds)); err != nil {
			return err
		}
	}
	listed := make(map[string]bool, len(coming))
	for _, c := range coming {
		listed[c.Name] = true
		if s.board.has(c.ID) || c.Cancelled && !r.GetEnded() {
			continue
		}
		if err := add(renderComing(c)); err != nil {
			return err
		}
	}
	for _, name := range expected {
		if listed[name] {
			continue
		}
		if err := add(&controlv1.Job{Name: clean(name), State: submitted}); err != nil {
			return err
		}
	}
	return to.Send(m)
}

// comingLimit bounds how long a backend that is in the middle of a round is waited for.
const comingLimit = 2 * time.Second

// coming is what is still to be submitted, as far as the backend tells.
func (s *Server) coming(ctx context.Context) []backend.Coming {
	if s.can.Expecting == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, comingLimit)
	defer cancel()
	list, err := s.can.Expecting.Coming(ctx)
	if err != nil {
		return nil // the names of what was handed in are known without
	}
	return list
}

// now is the moment, or the last one that is known when the backend has no clock to ask.
func (s *Server) now(lastRound float64) float64 {
	if s.can.Clock != nil {
		return max(lastRound, s.can.Clock.Present())
	}
	return lastRound
}

// Nodes lists the nodes, and the pools that they may be of.
func (s *Server) Nodes(ctx context.Context, _ *controlv1.NodesRequest) (*controlv1.NodesResponse, error) {
	if err := s.caughtUp(ctx); err != nil {
		return nil, err
	}
	m := &controlv1.NodesResponse{Nodes: s.board.listNodes(s.now(s.board.moment()))}
	m.Pools, m.MayGrow = s.board.listPools()
	return m, nil
}

// Describe returns what is on the board of a job.
func (s *Server) Describe(ctx context.Context, r *controlv1.DescribeRequest) (*controlv1.DescribeResponse, error) {
	if err := s.caughtUp(ctx); err != nil {
		return nil, err
	}
	f, decisions, now, known := s.board.find(r.GetJob())
	var next *backend.Coming
	if f == nil {
		next = s.comes(ctx, r.GetJob())
		f, decisions, now, known = s.board.find(r.GetJob()) // it may have come meanwhile
	}
	m := &controlv1.DescribeResponse{NowSeconds: s.now(now), Decisions: s.board.renderDecisions(decisions)}
	if why := s.board.notForecast.Load(); why != nil {
		m.NotForecast = clean(*why)
	}
	switch {
	case f != nil:
		m.Job = s.board.render(f, m.NowSeconds)
	case next != nil:
		m.Job = renderComing(*next)
	case known:
		m.Job = &controlv1.Job{Name: clean(r.GetJob()), State: submitted}
	default:
		return nil, s.unknownJob(r.GetJob())
	}
	return m, nil
}

// comes finds a job that is still to be submitted.
func (s *Server) comes(ctx context.Context, job string) *backend.Coming {
	list := s.coming(ctx)
	at := slices.IndexFunc(list, func(c backend.Coming) bool { return c.Name == job })
	if at < 0 {
		return nil
	}
	return &list[at]
}

// Logs sends the output of a replica.
func (s *Server) Logs(r *controlv1.LogsRequest, to grpc.ServerStreamingServer[controlv1.LogsResponse]) error {
	if r.GetRank() >= maxRank {
		return invalid("no job has a rank %d", r.GetRank())
	}
	l := backend.Log{Job: r.GetJob(), Rank: int(r.GetRank()), Stderr: r.GetStderr(), Follow: r.GetFollow()}
	err := s.order(to.Context(), l.Job, func() error {
		return s.backend.ReadLog(to.Context(), l, sender(func(chunk []byte) error {
			return to.Send(&controlv1.LogsResponse{Chunk: chunk})
		}))
	})
	if l.Follow && errors.Is(err, context.Canceled) && s.closing.Err() != nil && s.board.hasEnded(l.Job) {
		return nil // all is read: the run ends because its jobs have
	}
	return err
}

// Snapshot sends what another scheduler begins from.
func (s *Server) Snapshot(_ *controlv1.SnapshotRequest, to grpc.ServerStreamingServer[controlv1.SnapshotResponse]) error {
	return s.backend.WriteSnapshot(to.Context(), sender(func(chunk []byte) error {
		return to.Send(&controlv1.SnapshotResponse{Chunk: chunk})
	}))
}

// SoFar sends the files of the run as they would be if it ended now.
func (s *Server) SoFar(r *controlv1.SoFarRequest, to grpc.ServerStreamingServer[controlv1.SoFarResponse]) error {
	if s.soFar == nil {
		return s.UnimplementedControlServiceServer.SoFar(r, to)
	}
	if err := s.caughtUp(to.Context()); err != nil {
		return err
	}
	files, now, err := s.soFar()
	if err != nil {
		return err
	}
	for _, f := range files {
		send := sender(func(chunk []byte) error {
			return to.Send(&controlv1.SoFarResponse{NowSeconds: now, File: f.Name, Chunk: chunk})
		})
		if _, err := send.Write(f.Content); err != nil {
			return err
		}
	}
	return nil
}

// sender is a writer that sends a chunk at a time.
type sender func(chunk []byte) error

func (send sender) Write(p []byte) (n int, err error) {
	for n < len(p) {
		chunk := p[n:min(n+chunkBytes, len(p))]
		if err := send(chunk); err != nil {
			return n, err
		}
		n += len(chunk)
	}
	return n, nil
}

func invalid(format string, args ...any) error {
	return core.Diagnostics{{Summary: fmt.Sprintf(format, args...)}}
}
