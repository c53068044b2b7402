// Package policydocs holds what docs/policies.md says of each built-in policy besides what its factory knows: where its code is, which
// shipped config reproduces it, and how exactly. Its test writes the page (-update) and fails when it is stale or a policy lacks facts.
package policydocs

// Facts are what the catalogue does not know of a policy.
type Facts struct {
	File    string // that its code begins in
	Config  string // shipped config or study that uses or reproduces it, below configs/; empty for none
	Exact   string // how exactly the publication is reproduced, in the words of the results page
	Results string // page that measures it, below docs/, with its anchor; empty for none
}

const (
	none    = "no published figures to compare with"
	noPaper = "no publication"
	sources = "not compared with published figures"
)

// all lists the facts by stage and type, as a run names a component; cluster is the scaler.
var all = map[string]Facts{
	"admission/accept_all":         {"admission/accept_all.go", "default.yaml", noPaper, ""},
	"admission/load_threshold":     {"admission/load_threshold.go", "compositions/pollux-load-threshold.yaml", sources, ""},
	"admission/fits_all":           {"admission/fits_all.go", "papers/saxena-mascots20/elastic.yaml", "job for job with the recipe, 45 runs", "results/elastic.md"},
	"admission/deadline":           {"admission/deadline.go", "papers/elasticflow-asplos23/elasticflow.yaml", "shape: same verdict for 154 of 195 jobs", "results/elastic.md#deadlines-elasticflow-asplos23"},
	"admission/quota":              {"admission/quota.go", "papers/hived-osdi20/quotas.yaml", "direction: jobs wait inside their quota", "cells.md#how-it-does"},
	"admission/virtual_clusters":   {"admission/virtual_clusters.go", "papers/hived-osdi20/cells.yaml", "direction: no refusal inside a quota", "cells.md#how-it-does"},
	"admission/convergence":        {"admission/convergence.go", "studies/termination.yaml", "shape: mean JCT -42 to -49 % (about -44 %)", "results/quality.md#ending-jobs-that-stand-still-blox-eurosys24"},
	"admission/median":             {"admission/median.go", "", sources, "early-stopping.md"},
	"admission/successive_halving": {"admission/successive_halving.go", "", sources, "early-stopping.md"},
	"admission/asha":               {"admission/asha.go", "studies/tuning.yaml", sources, "results/tuning.md"},
	"admission/hyperband":          {"admission/hyperband.go", "", sources, "early-stopping.md"},

	"allocation/fifo":                        {"allocation/fifo.go", "papers/blox-eurosys24/fifo.yaml", "job for job, Blox; mean JCT within 0.006 %, Tiresias' simulator", "results/blox.md"},
	"allocation/antman":                      {"allocation/antman.go", "papers/muri-sigcomm22/antman.yaml", "991 of 992 jobs equal; three traces 0.2 to 0.8 % off", "results/sharing.md#muri-sigcomm22"},
	"allocation/srtf":                        {"allocation/srtf.go", "papers/blox-eurosys24/srtf.yaml", "job for job, Blox and Synergy; mean JCT within 0.006 %, Tiresias' simulator", "results/blox.md"},
	"allocation/las":                         {"allocation/las.go", "papers/blox-eurosys24/las.yaml", "job for job, Blox", "results/blox.md"},
	"allocation/tiresias":                    {"allocation/tiresias/policy.go", "papers/pollux-osdi21/tiresias.yaml", "job for job, Pollux artifact; mean JCT within 0.006 %, its own simulator", "results/pollux.md"},
	"allocation/elastic_dp":                  {"allocation/elastic_dp.go", "papers/saxena-mascots20/elastic.yaml", "job for job with the recipe, 45 runs", "results/elastic.md"},
	"allocation/elastic_fifo":                {"allocation/elastic_fifo.go", "compositions/elastic-fifo-goodput.yaml", sources, ""},
	"allocation/elastic_srtf":                {"allocation/elastic_srtf.go", "compositions/elastic-srtf-goodput.yaml", sources, ""},
	"allocation/elastic_tiresias":            {"allocation/elastic_tiresias.go", "compositions/elastic-tiresias-goodput.yaml", sources, ""},
	"allocation/elasticflow":                 {"allocation/elasticflow/policy.go", "papers/elasticflow-asplos23/elasticflow.yaml", "shape: ratio met 0.718 and 0.733 (0.728)", "results/elastic.md#deadlines-elasticflow-asplos23"},
	"allocation/gpu_fraction":                {"allocation/gpufraction/policy.go", "compositions/gpu-fraction.yaml", none, "tiers.md#how-it-does"},
	"allocation/edf":                         {"allocation/edf.go", "papers/elasticflow-asplos23/edf.yaml", "shape: ratio met 0.118", "results/elastic.md#deadlines-elasticflow-asplos23"},
	"allocation/optimus":                     {"allocation/optimus.go", "papers/pollux-osdi21/optimus.yaml", "job for job, Pollux artifact", "results/pollux.md"},
	"allocation/afs":                         {"allocation/afs.go", "compositions/greedy-goodput.yaml", sources, ""},
	"allocation/themis":                      {"allocation/themis/policy.go", "", sources, ""},
	"allocation/lucid":                       {"allocation/lucid/policy.go", "papers/lucid-asplos23/lucid.yaml", "direction: its trace and pairs are not public", "results/sharing.md#lucid-asplos23"},
	"allocation/gandiva":                     {"allocation/gandiva/policy.go", "papers/gandiva-osdi18/gandiva.yaml", "direction: completion a third below turns alone", "results/sharing.md#gandiva-osdi18"},
	"allocation/drf":                         {"allocation/drf.go", "papers/synergy-osdi22/drf-fair.yaml", "job for job, Synergy's simulator", "results/sharing.md#synergy-osdi22"},
	"allocation/tetris":                      {"allocation/tetris.go", "papers/synergy-osdi22/tetris-fair.yaml", "job for job, Synergy's simulator", "results/sharing.md#synergy-osdi22"},
	"allocation/ftf":                         {"allocation/ftf.go", "papers/synergy-osdi22/ftf-fair.yaml", "job for job, Synergy's simulator", "results/sharing.md#synergy-osdi22"},
	"allocation/muri":                        {"allocation/muri/policy.go", "papers/muri-sigcomm22/muri-l.yaml", "within 0.4 % of the re-run; up to -8.3 % of the published means", "results/sharing.md#muri-sigcomm22"},
	"allocation/pollux":                      {"allocation/pollux/pollux.go", "papers/pollux-osdi21/pollux-exact.yaml", "within 3 %, 12 settings of Figure 8", "results/pollux.md"},
	"allocation/matching":                    {"allocation/matching/matching.go", "papers/matching-tpds24/matching.yaml", "gap of single decisions 0.08 % and 0.01 % in the mean", "results/matching.md"},
	"allocation/sia":                         {"allocation/sia/sia.go", "papers/sia-sosp23/sia.yaml", "mean JCT within 1.7 %, four traces", "results/sia.md"},
	"allocation/gavel_max_min":               {"allocation/gavel/max_min.go", "papers/gavel-osdi20/max-min.yaml", "within 3 %", "results/gavel.md"},
	"allocation/gavel_water_filling":         {"allocation/gavel/water_filling.go", "papers/gavel-osdi20/water-filling.yaml", "within 3 %", "results/gavel.md"},
	"allocation/finish_time_fairness":        {"allocation/gavel/finish_time_fairness.go", "papers/gavel-osdi20/finish-time-fairness.yaml", "within 3 %", "results/gavel.md"},
	"allocation/gavel_makespan":              {"allocation/gavel/makespan.go", "papers/gavel-osdi20/makespan.yaml", "makespan -7.2 % to +4.8 %, by jobs; mean JCT +7 % on its static trace", "results/gavel.md"},
	"allocation/gavel_max_sum":               {"allocation/gavel/max_sum.go", "papers/gavel-osdi20/max-sum.yaml", "within 3 %", "results/gavel.md"},
	"allocation/best_normalised_sum":         {"allocation/gavel/best_normalised_sum.go", "papers/gavel-osdi20/best-normalised-sum.yaml", "mean JCT -0.01 % at 5.2 jobs an hour, -30 % at 6", "results/gavel.md"},
	"allocation/fifo_perf":                   {"allocation/gavel/fifo_perf.go", "papers/gavel-osdi20/fifo-perf.yaml", "within 3 %", "results/gavel.md"},
	"allocation/allox":                       {"allocation/gavel/allox.go", "papers/gavel-osdi20/allox.yaml", "within 3 %", "results/gavel.md"},
	"allocation/isolated":                    {"allocation/gavel/isolated.go", "papers/gavel-osdi20/isolated.yaml", "within 3 %", "results/gavel.md"},
	"allocation/gavel_max_min_packed":        {"allocation/gavel/packed.go", "papers/gavel-osdi20/max-min-packed.yaml", "within 3.9 %, 12.8 % with 1 to 8 devices", "results/gavel.md"},
	"allocation/gavel_makespan_packed":       {"allocation/gavel/packed.go", "papers/gavel-osdi20/makespan-packed.yaml", "-4.7 % for 100 jobs, -8.3 % for 700", "results/gavel.md"},
	"allocation/finish_time_fairness_packed": {"allocation/gavel/packed.go", "papers/gavel-osdi20/finish-time-fairness-packed.yaml", "within 3.9 %, 12.8 % with 1 to 8 devices", "results/gavel.md"},

	"placement/first_fit":        {"placement/first_fit.go", "papers/elasticflow-asplos23/elasticflow.yaml", noPaper, ""},
	"placement/consolidated":     {"placement/consolidated.go", "papers/saxena-mascots20/elastic.yaml", noPaper, ""},
	"placement/most_free":        {"placement/most_free.go", "papers/pollux-osdi21/tiresias.yaml", "job for job, Pollux artifact", "results/pollux.md"},
	"placement/tiresias_skew":    {"placement/tiresias_skew.go", "", sources, ""},
	"placement/proposed":         {"placement/proposed.go", "default.yaml", noPaper, ""},
	"placement/matching":         {"placement/matching.go", "papers/matching-tpds24/optimus-matching.yaml", sources, "results/matching.md"},
	"placement/buddy":            {"placement/buddy.go", "", sources, ""},
	"placement/cells":            {"placement/cells.go", "papers/hived-osdi20/cells.yaml", "direction: no refusal inside a quota", "cells.md#how-it-does"},
	"placement/fgd":              {"placement/fgd.go", "papers/fgd-atc23/fgd.yaml", "curves to 0.01; task by task 9 of 10,866 differ", "results/sharing.md#fragments-fgd-atc23"},
	"placement/fragmentation":    {"placement/fragmentation.go", "papers/fgd-atc23/fragmentation.yaml", noPaper, "results/sharing.md#fragments-fgd-atc23"},
	"placement/best_fit":         {"placement/best_fit.go", "papers/fgd-atc23/best-fit.yaml", "curves to 0.01", "results/sharing.md#fragments-fgd-atc23"},
	"placement/dot_product":      {"placement/dot_product.go", "papers/fgd-atc23/dot-product.yaml", "curves to 0.01", "results/sharing.md#fragments-fgd-atc23"},
	"placement/packing":          {"placement/packing.go", "papers/fgd-atc23/packing.yaml", "curves to 0.01", "results/sharing.md#fragments-fgd-atc23"},
	"placement/clustering":       {"placement/clustering.go", "papers/fgd-atc23/clustering.yaml", "curves to 0.01", "results/sharing.md#fragments-fgd-atc23"},
	"placement/random":           {"placement/random.go", "", sources, ""},
	"placement/tail_eviction":    {"placement/tail_eviction.go", "papers/blox-eurosys24/las.yaml", "job for job", "results/blox.md"},
	"placement/gandiva_affinity": {"placement/gandivaaffinity/policy.go", "papers/gandiva-osdi18/gandiva.yaml", "direction", "results/sharing.md#gandiva-osdi18"},
	"placement/antman":           {"placement/antman/policy.go", "papers/muri-sigcomm22/antman.yaml", "991 of 992 jobs equal; three traces 0.2 to 0.8 % off", "results/sharing.md#muri-sigcomm22"},
	"placement/synergy":          {"placement/synergy.go", "papers/synergy-osdi22/srtf-tune.yaml", "job for job, 16 runs of its simulator", "results/sharing.md#synergy-osdi22"},

	"elasticity/fixed":      {"elasticity/fixed.go", "papers/pollux-osdi21/optimus.yaml", "job for job under Tiresias and Optimus, Pollux artifact", "results/pollux.md"},
	"elasticity/goodput":    {"elasticity/goodput.go", "papers/pollux-osdi21/pollux-exact.yaml", "within 3 %, 12 settings of Figure 8", "results/pollux.md"},
	"elasticity/throughput": {"elasticity/throughput.go", "papers/saxena-mascots20/elastic.yaml", "curves to 1e-6", "results/elastic.md"},
	"elasticity/batch_rule": {"elasticity/batch_rule.go", "papers/adaptive-batch/kungfu.yaml", sources, "results/quality.md"},
	"elasticity/loss_gain":  {"elasticity/loss_gain.go", "papers/slaq-socc17/slaq.yaml", "direction: area under the loss 35 to 37 % below LAS and SRTF", "results/quality.md"},

	"cluster/none":       {"elasticity/scaler/none.go", "default.yaml", noPaper, ""},
	"cluster/goodput":    {"elasticity/scaler/goodput.go", "papers/pollux-osdi21/autoscale.yaml", "19 runs of the reference equal; cost -23.7 % (-24.5 ± 1)", "results/elastic.md#autoscaling-pollux-osdi21-541"},
	"cluster/marginal":   {"elasticity/scaler/marginal.go", "studies/autoscaling.yaml", noPaper, "results/elastic.md#autoscaling-pollux-osdi21-541"},
	"cluster/queue":      {"elasticity/scaler/queue.go", "pools.yaml", sources, ""},
	"cluster/throughput": {"elasticity/scaler/throughput.go", "studies/autoscaling.yaml", sources, "results/elastic.md#autoscaling-pollux-osdi21-541"},
}
