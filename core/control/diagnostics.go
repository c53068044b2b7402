package control

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

// What a status may hold travels in a header, whose size is bounded.
const (
	sentDiagnostics = 500
	sentText        = 1 << 10 // bytes of each text
)

// toStatus is an error as it crosses the wire.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, already := status.FromError(err); already {
		return err
	}
	found, ok := errors.AsType[core.Diagnostics](err)
	if !ok {
		if s := status.FromContextError(err); s.Code() != codes.Unknown {
			return s.Err()
		}
		return status.Error(codes.Unknown, short(err.Error()))
	}
	s, failed := status.New(codes.InvalidArgument, short(found[0].String())).WithDetails(renderDiagnostics(found))
	if failed != nil {
		return status.Error(codes.InvalidArgument, short(err.Error()))
	}
	return s.Err()
}

func renderDiagnostics(found core.Diagnostics) *controlv1.Diagnostics {
	message := &controlv1.Diagnostics{}
	for i, d := range found {
		if i == sentDiagnostics {
			message.List = append(message.List, &controlv1.Diagnostic{
				File: short(d.Position.File), Summary: fmt.Sprintf("%d more problems", len(found)-i),
			})
			break
		}
		message.List = append(message.List, &controlv1.Diagnostic{
			File: short(d.Position.File), Line: uint32(d.Position.Line), Column: uint32(d.Position.Column),
			Path: short(d.Path), Summary: short(d.Summary), Hint: short(d.Hint),
		})
	}
	return message
}

// short is the beginning of a text.
func short(text string) string {
	if len(text) > sentText {
		text = text[:sentText] + "…"
	}
	return clean(text)
}

// fromStatus is an error as the caller of a client sees it.
func fromStatus(err error) error {
	s, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	for _, detail := range s.Details() {
		if told, ok := detail.(*controlv1.Diagnostics); ok && len(told.GetList()) > 0 {
			return readDiagnostics(told)
		}
	}
	return &callError{s}
}

func readDiagnostics(told *controlv1.Diagnostics) core.Diagnostics {
	found := make(core.Diagnostics, len(told.GetList()))
	for i, d := range told.GetList() {
		found[i] = core.Diagnostic{
			Position: core.Position{File: d.GetFile(), Line: int(d.GetLine()), Column: int(d.GetColumn())},
			Path:     d.GetPath(), Summary: d.GetSummary(), Hint: d.GetHint(),
		}
	}
	return found
}

// callError is what a call came to, in the scheduler's words.
type callError struct{ *status.Status }

func (e *callError) Error() string {
	switch e.Code() {
	case codes.Unknown:
		return e.Message()
	case codes.Unavailable:
		return "the scheduler does not answer: " + plainly(e.Message())
	case codes.DeadlineExceeded:
		return "the scheduler took too long to answer"
	case codes.Internal:
		return "fault in the scheduler: " + e.Message()
	default:
		return e.Code().String() + ": " + e.Message()
	}
}

// Is reports a call that the scheduler gave up as one whose time is over: it may notice before the caller does.
func (e *callError) Is(target error) bool {
	return target == context.DeadlineExceeded && e.Code() == codes.DeadlineExceeded //nolint:errorlint // targets are compared as they are
}

// wrappings are what gRPC puts around the cause of a failure.
var wrappings = []string{
	"connection error: ", "desc = ", "transport: ", "error reading server preface: ", "authentication handshake failed: ",
	"Error while dialing: ", "failed to write client preface: ",
}

// plainly is the cause of a failure.
func plainly(message string) string {
	for unwrapped := true; unwrapped; {
		unwrapped = false
		for _, wrapping := range wrappings {
			rest, found := strings.CutPrefix(message, wrapping)
			if inside, err := strconv.Unquote(rest); err == nil {
				rest, found = inside, true
			}
			message, unwrapped = rest, unwrapped || found
		}
	}
	if message == "EOF" {
		return "the connection was closed"
	}
	return message
}

// GRPCStatus lets status.Code look inside.
func (e *callError) GRPCStatus() *status.Status { return e.Status }

// suggestFrom bounds how many names an unknown one is compared with.
const suggestFrom = 10_000
