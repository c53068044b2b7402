package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// ring joins the replicas of a job in a circle: each sends to the next and receives from the one before.
type ring struct {
	rank, replicas int
	next, before   net.Conn
	from           *bufio.Reader
	sent           chan error
	out, in        []byte
}

// joinRing meets the other replicas in a folder. A replica alone needs none.
func joinRing(ctx context.Context, folder string, rank, replicas int) (*ring, error) {
	r := &ring{rank: rank, replicas: replicas, sent: make(chan error, 1)}
	if replicas == 1 {
		return r, nil
	}
	if err := r.meet(ctx, folder); err != nil {
		r.close()
		return nil, fmt.Errorf("meet the other replicas in %q: %w", folder, err)
	}
	r.from = bufio.NewReaderSize(r.before, 64<<10)
	return r, nil
}

func address(folder string, rank int) *net.UnixAddr {
	return &net.UnixAddr{Net: "unix", Name: filepath.Join(folder, "rank-"+strconv.Itoa(rank)+".sock")}
}

func (r *ring) meet(ctx context.Context, folder string) error {
	ours := address(folder, r.rank)
	if err := os.Remove(ours.Name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := net.ListenUnix("unix", ours)
	if err != nil {
		return err
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	if r.next, err = dialUntil(ctx, address(folder, (r.rank+1)%r.replicas)); err != nil {
		return err
	}
	if r.before, err = l.Accept(); err != nil {
		return errors.Join(err, ctx.Err())
	}
	return nil
}

// dialUntil waits for the other side to be there.
func dialUntil(ctx context.Context, to *net.UnixAddr) (net.Conn, error) {
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", to.Name)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func (r *ring) close() {
	for _, conn := range []net.Conn{r.next, r.before} {
		if conn != nil {
			_ = conn.Close() // there is nothing more to say
		}
	}
}

// sum replaces the vector of each replica by the sum of all: in replicas-1 exchanges each replica gets the sum of one
// part of it, and in as many again all get all parts.
func (r *ring) sum(vector []int64) error {
	for turn := range 2 * (r.replicas - 1) {
		give, take := r.part(vector, r.rank-turn), r.part(vector, r.rank-turn-1)
		got, err := r.exchange(give, len(take))
		if err != nil {
			return fmt.Errorf("replica %d lost its neighbours: %w", r.rank, err)
		}
		for i := range take {
			n := int64(binary.LittleEndian.Uint64(got[8*i:]))
			if turn < r.replicas-1 {
				n += take[i]
			}
			take[i] = n
		}
	}
	return nil
}

// part is one of as many parts of a vector as there are replicas, counted in a circle.
func (r *ring) part(vector []int64, i int) []int64 {
	i = (i%r.replicas + r.replicas) % r.replicas
	return vector[i*len(vector)/r.replicas : (i+1)*len(vector)/r.replicas]
}

// exchange sends and receives at once, for neither side may have room for what the other sends. The numbers received
// are valid until the next call.
func (r *ring) exchange(give []int64, take int) ([]byte, error) {
	r.out = r.out[:0]
	for _, n := range give {
		r.out = binary.LittleEndian.AppendUint64(r.out, uint64(n))
	}
	go func() {
		var err error
		if len(r.out) > 0 { // who awaits nothing may be gone
			_, err = r.next.Write(r.out)
		}
		r.sent <- err
	}()
	if cap(r.in) < 8*take {
		r.in = make([]byte, 8*take)
	}
	r.in = r.in[:8*take]
	_, err := io.ReadFull(r.from, r.in)
	if err != nil { // the neighbour is gone: so will be the other one
		r.close()
	}
	return r.in, errors.Join(err, <-r.sent)
}
