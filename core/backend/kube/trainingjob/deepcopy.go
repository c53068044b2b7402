package trainingjob

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopy is a copy that shares nothing with j.
func (j *TrainingJob) DeepCopy() *TrainingJob {
	if j == nil {
		return nil
	}
	to := &TrainingJob{TypeMeta: j.TypeMeta, Spec: *j.Spec.DeepCopy(), Status: *j.Status.DeepCopy()}
	j.ObjectMeta.DeepCopyInto(&to.ObjectMeta)
	return to
}

// DeepCopyObject is DeepCopy as the machinery of the API asks for it.
func (j *TrainingJob) DeepCopyObject() runtime.Object {
	if j == nil {
		return nil
	}
	return j.DeepCopy()
}

// DeepCopy is a copy that shares nothing with l.
func (l *TrainingJobList) DeepCopy() *TrainingJobList {
	if l == nil {
		return nil
	}
	to := &TrainingJobList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&to.ListMeta)
	if l.Items != nil {
		to.Items = make([]TrainingJob, len(l.Items))
		for i := range l.Items {
			to.Items[i] = *l.Items[i].DeepCopy()
		}
	}
	return to
}

// DeepCopyObject is DeepCopy as the machinery of the API asks for it.
func (l *TrainingJobList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	return l.DeepCopy()
}

// DeepCopy is a copy that shares nothing with s.
func (s *Spec) DeepCopy() *Spec {
	to := *s
	to.Accelerators = slices.Clone(s.Accelerators)
	to.GraceSeconds, to.StartTimeoutSeconds = clone(s.GraceSeconds), clone(s.StartTimeoutSeconds)
	to.Adopts = clone(s.Adopts)
	to.Template = *s.Template.DeepCopy()
	return &to
}

// DeepCopy is a copy that shares nothing with s.
func (s *Status) DeepCopy() *Status {
	to := *s
	to.ID = clone(s.ID)
	if to.Decision = clone(s.Decision); to.Decision != nil {
		to.Decision.Seats, to.Decision.Stopped = slices.Clone(s.Decision.Seats), clone(s.Decision.Stopped)
		if to.Decision.Tuning = clone(s.Decision.Tuning); to.Decision.Tuning != nil {
			to.Decision.Tuning.BatchByReplica = slices.Clone(s.Decision.Tuning.BatchByReplica)
		}
	}
	if to.Progress = clone(s.Progress); to.Progress != nil {
		to.Progress.FirstStartSeconds = clone(s.Progress.FirstStartSeconds)
	}
	if to.Forecast = clone(s.Forecast); to.Forecast != nil {
		to.Forecast.Start, to.Forecast.End = s.Forecast.Start.deepCopy(), s.Forecast.End.deepCopy()
	}
	if s.Conditions != nil {
		to.Conditions = make([]metav1.Condition, len(s.Conditions))
		for i := range s.Conditions {
			s.Conditions[i].DeepCopyInto(&to.Conditions[i])
		}
	}
	return &to
}

func (b *Band) deepCopy() *Band {
	if b == nil {
		return nil
	}
	return &Band{b.Low.DeepCopy(), b.Median.DeepCopy(), b.High.DeepCopy()}
}

// clone copies a value without pointers in it.
func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	to := *p
	return &to
}
