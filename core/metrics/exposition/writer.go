package exposition

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quartet-sched/quartet/core/metrics"
)

// writer tells metrics. Labels are pairs of a name and a value.
type writer struct{ out chan<- prometheus.Metric }

func (w writer) counter(name, help string, value float64, labels ...string) {
	w.constant(prometheus.CounterValue, name, help, value, labels)
}

func (w writer) gauge(name, help string, value float64, labels ...string) {
	w.constant(prometheus.GaugeValue, name, help, value, labels)
}

// number tells a gauge, unless it is not known.
func (w writer) number(name, help string, value metrics.Number, labels ...string) {
	if value.Known() {
		w.gauge(name, help, float64(value), labels...)
	}
}

// distribution tells a sample of times: its quantiles, its mean as a sum and a count, and its maximum.
func (w writer) distribution(name, what string, d metrics.Distribution, count int) {
	w.summary(name+"_seconds", "Distribution of the "+what+".", count, d.Mean,
		map[float64]metrics.Number{0.5: d.P50, 0.9: d.P90, 0.95: d.P95, 0.99: d.P99})
	w.number(name+"_max_seconds", "Longest "+what+".", d.Max)
}

func (w writer) summary(name, help string, count int, mean metrics.Number, quantiles map[float64]metrics.Number, labels ...string) {
	desc, values := describe(name, help, labels)
	known, sum := map[float64]float64{}, 0.0
	for q, value := range quantiles {
		if value.Known() {
			known[q] = float64(value)
		}
	}
	if mean.Known() {
		sum = float64(mean) * float64(count)
	}
	w.send(desc)(prometheus.NewConstSummary(desc, uint64(count), sum, known, values...))
}

func (w writer) constant(kind prometheus.ValueType, name, help string, value float64, labels []string) {
	desc, values := describe(name, help, labels)
	w.send(desc)(prometheus.NewConstMetric(desc, kind, value, values...))
}

// send tells a metric; what is wrong with it fails the scrape.
func (w writer) send(desc *prometheus.Desc) func(prometheus.Metric, error) {
	return func(m prometheus.Metric, err error) {
		if err != nil {
			m = prometheus.NewInvalidMetric(desc, err)
		}
		w.out <- m
	}
}

func describe(name, help string, labels []string) (desc *prometheus.Desc, values []string) {
	var names []string
	for i := 0; i < len(labels); i += 2 {
		names = append(names, labels[i])
		values = append(values, strings.ToValidUTF8(labels[i+1], "\uFFFD"))
	}
	return prometheus.NewDesc(namespace+name, help, names, nil), values
}
