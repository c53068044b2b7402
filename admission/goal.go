package admission

import (
	"slices"
	"strings"
	"unicode"
)

// The words by which goal: auto knows the metrics of which less is better, and those of which more is. Others may be either.
var (
	falling = []string{"err", "error", "loss", "mae", "mape", "mse", "nll", "perplexity", "ppl", "rmse"}
	growing = []string{"acc", "accuracy", "auc", "auroc", "bleu", "f1", "iou", "map", "miou", "precision", "r2", "recall", "return", "reward", "score"}
)

// direction is which values of a metric are better by the words of its name, with or without the digits in them; "" where they do not tell, or contradict each other, and where
// the name is a formula, such as 1-accuracy.
func direction(metric string) string {
	var less, more bool
	take := func(word string) bool {
		falls, grows := slices.Contains(falling, word), slices.Contains(growing, word)
		less, more = less || falls, more || grows
		return falls || grows
	}
	parts := func(r rune) bool { return !unicode.IsLetter(r) }
	words := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	if strings.IndexFunc(metric, parts) == 0 {
		return ""
	}
	for _, word := range strings.FieldsFunc(strings.ToLower(metric), words) {
		if !take(word) {
			for _, part := range strings.FieldsFunc(word, parts) {
				take(part)
			}
		}
	}
	switch {
	case less == more:
		return ""
	case more:
		return goalMaximize
	default:
		return goalMinimize
	}
}

// Goal is what an admission that judges trials is to do with a metric, minimize or maximize, where its own goal may be auto.
func Goal(goal, metric string) string {
	if moreIsBetter(goal, metric) {
		return goalMaximize
	}
	return goalMinimize
}

// moreIsBetter reports whether more is better of a metric.
func moreIsBetter(goal, metric string) bool {
	if goal == goalAuto {
		goal = direction(metric)
	}
	return goal == goalMaximize
}
