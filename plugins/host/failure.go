package host

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// pluginFailure is a malfunction of a component in another process. The pipeline adds the round and the component.
type pluginFailure struct {
	Plugin      string // Plugin is its name.
	Cause       error  // Cause is what went wrong.
	FinalOutput string // FinalOutput is the end of the stderr of a process that died.
	Restarts    int    // Restarts counts the restarts before the host gave up.
	Remedy      string // Remedy says what the user can do; empty for nothing.
}

func (f *pluginFailure) Error() string {
	cause := core.CleanText(f.Cause.Error(), core.MaxText)
	parts := []string{fmt.Sprintf("plugin %q: %s", f.Plugin, cause)}
	if rule := (*core.InvariantError)(nil); errors.As(f.Cause, &rule) { // which names round and component itself
		parts[0] = fmt.Sprintf("%s (answer of plugin %q)", cause, f.Plugin)
	}
	if f.FinalOutput != "" {
		parts = append(parts, fmt.Sprintf("its last output: %q", f.FinalOutput))
	}
	if f.Restarts > 0 {
		parts = append(parts, fmt.Sprintf("given up after %d restarts", f.Restarts))
	}
	if f.Remedy != "" {
		parts = append(parts, f.Remedy)
	}
	return strings.Join(parts, "; ")
}

func (f *pluginFailure) Unwrap() error { return f.Cause }

// fail ends the process of a component that failed, and describes the failure.
func (w *worker) fail(cause error) *pluginFailure {
	f := &pluginFailure{Plugin: w.name, Cause: cause}
	session := w.session
	_ = w.Close()
	s, called := status.FromError(cause)
	switch {
	case !called: // it answered, and the answer is at fault
		f.Remedy = "`quartet plugin test` shows what it answers wrongly"
	case s.Code() == codes.DeadlineExceeded:
		f.Cause = fmt.Errorf("call timed out after %v", w.options.CallTimeout)
		f.Remedy = "raise plugin.call_timeout if the policy needs the time"
	case s.Code() == codes.Unavailable:
		f.Cause = errors.New("the process died")
		if session != nil && session.End != nil && session.FinalOutput != nil {
			f.Cause, f.FinalOutput = fmt.Errorf("the process died: %s", session.End()), session.FinalOutput()
		}
	case s.Code() == codes.ResourceExhausted:
		f.Cause = fmt.Errorf("a message exceeded the %d MiB that one may have: %s", wire.MaxMessage>>20, s.Message())
		f.Remedy = "answer with less"
	default:
		f.Cause = errors.New(s.Message())
	}
	switch w.options.OnFailure {
	case "":
		f.Remedy = ""
	case Fail:
		f.Remedy = strings.TrimPrefix(f.Remedy+"; plugin.on_failure: restart or fallback lets a run survive this", "; ")
	}
	return f
}
