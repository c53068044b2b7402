package quartet

import (
	"github.com/quartet-sched/quartet/admission"
	"github.com/quartet-sched/quartet/allocation"
	"github.com/quartet-sched/quartet/allocation/elasticflow"
	"github.com/quartet-sched/quartet/allocation/gandiva"
	"github.com/quartet-sched/quartet/allocation/gavel"
	"github.com/quartet-sched/quartet/allocation/gpufraction"
	"github.com/quartet-sched/quartet/allocation/lucid"
	"github.com/quartet-sched/quartet/allocation/matching"
	"github.com/quartet-sched/quartet/allocation/muri"
	"github.com/quartet-sched/quartet/allocation/pollux"
	"github.com/quartet-sched/quartet/allocation/sia"
	"github.com/quartet-sched/quartet/allocation/themis"
	"github.com/quartet-sched/quartet/allocation/tiresias"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/tuning"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/elasticity"
	"github.com/quartet-sched/quartet/elasticity/scaler"
	"github.com/quartet-sched/quartet/placement"
	"github.com/quartet-sched/quartet/placement/antman"
	"github.com/quartet-sched/quartet/placement/gandivaaffinity"
)

// Builtins is the one list of every built-in component: a new policy is one more line here. Backends of real machines are
// not among them, so that whoever embeds the simulator links no client of an engine: add them with WithBackend.
func Builtins() Catalog {
	return Catalog{
		Workload: []core.Factory[workload.Source]{
			workload.NewGenerated(),
			workload.NewCSV(),
			workload.NewPhilly(),
			workload.NewTiresias(),
			workload.NewBlox(),
			workload.NewPollux(),
			workload.NewElastic(),
			workload.NewElasticFlow(),
			workload.NewShockwave(),
			workload.NewSia(),
			workload.NewGavel(),
			workload.NewGavelGenerated(),
			workload.NewOpenB(),
			workload.NewMuri(),
			workload.NewMixedTypes(),
			workload.NewSynergy(),
			workload.NewJobs(),
			workload.NewSubmitted(),
			tuning.New(),
		},
		Admission: []core.Factory[core.Admitter]{
			admission.NewAcceptAll(),
			admission.NewLoadThreshold(),
			admission.NewFitsAll(),
			admission.NewDeadline(),
			admission.NewQuota(),
			admission.NewVirtualClusters(),
			admission.NewConvergence(),
			admission.NewMedian(),
			admission.NewSuccessiveHalving(),
			admission.NewASHA(),
			admission.NewHyperband(),
		},
		Allocation: []core.Factory[core.Allocator]{
			allocation.NewFIFO(),
			allocation.NewAntMan(),
			allocation.NewSRTF(),
			allocation.NewLAS(),
			tiresias.New(),
			allocation.NewElasticDP(),
			allocation.NewElasticFIFO(),
			allocation.NewElasticSRTF(),
			allocation.NewElasticTiresias(),
			elasticflow.New(),
			gpufraction.New(),
			allocation.NewEDF(),
			allocation.NewOptimus(),
			allocation.NewAFS(),
			themis.New(),
			lucid.New(),
			gandiva.New(),
			allocation.NewDRF(),
			allocation.NewTetris(),
			allocation.NewFTF(),
			muri.New(),
			pollux.New(),
			matching.New(),
			sia.New(),
			gavel.NewMaxMin(),
			gavel.NewWaterFilling(),
			gavel.NewFinishTimeFairness(),
			gavel.NewMakespan(),
			gavel.NewMaxSum(),
			gavel.NewBestNormalisedSum(),
			gavel.NewFIFOPerf(),
			gavel.NewAlloX(),
			gavel.NewIsolated(),
			gavel.NewMaxMinPacked(),
			gavel.NewMakespanPacked(),
			gavel.NewFinishTimeFairnessPacked(),
		},
		Placement: []core.Factory[core.Placer]{
			placement.NewFirstFit(),
			placement.NewConsolidated(),
			placement.NewMostFree(),
			placement.NewTiresiasSkew(),
			placement.NewProposed(),
			placement.NewMatching(),
			placement.NewBuddy(),
			placement.NewCells(),
			placement.NewFGD(),
			placement.NewFragmentation(),
			placement.NewBestFit(),
			placement.NewDotProduct(),
			placement.NewPacking(),
			placement.NewClustering(),
			placement.NewRandom(),
			placement.NewTailEviction(),
			gandivaaffinity.New(),
			antman.New(),
			placement.NewSynergy(),
		},
		Elasticity: []core.Factory[core.Elasticity]{
			elasticity.NewFixed(),
			elasticity.NewGoodput(),
			elasticity.NewThroughput(),
			elasticity.NewBatchRule(),
			elasticity.NewLossGain(),
		},
		Scaler: []core.Factory[core.ClusterScaler]{
			scaler.NewNone(),
			scaler.NewGoodput(),
			scaler.NewMarginal(),
			scaler.NewQueue(),
			scaler.NewThroughput(),
		},
		Backend: []core.Factory[backend.Opener]{
			sim.NewSimulator(),
		},
	}
}
