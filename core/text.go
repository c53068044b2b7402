package core

import "github.com/quartet-sched/quartet/internal/oneline"

// MaxText bounds a text that a component or a job gave, in bytes, where it reaches errors, logs or outputs.
const MaxText = 1000

// CleanText makes a text from elsewhere fit to be shown: valid UTF-8 on one line, without control characters or escape
// sequences, of at most limit bytes. A text that is so already is returned as it is.
func CleanText(text string, limit int) string { return oneline.Text(text, limit) }
