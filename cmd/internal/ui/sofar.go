package ui

import (
	"context"

	"github.com/quartet-sched/quartet/core/control"
	"github.com/quartet-sched/quartet/lab/report"
)

// ReadSoFar asks the scheduler behind a socket for the files that are written when its run ends.
func ReadSoFar(ctx context.Context, socket string) (*report.SoFar, error) {
	client, err := control.Dial(ctx, socket)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	files, now, err := client.SoFar(ctx)
	if err != nil {
		return nil, err
	}
	return &report.SoFar{Files: files, NowSeconds: now}, nil
}
