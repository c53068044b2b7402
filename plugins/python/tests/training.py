"""A training that does nothing but speak with its scheduler, for the tests in Go."""

import sys
import time

from quartet_agent import STOPPED, Agent

agent = Agent()
progress = 0
while True:
    progress += 1
    told = agent.poll()
    batch = told.tuning.batch_per_device if told.tuning else 0
    if batch and told.world:
        agent.report(replicas=told.world.replicas, nodes=told.world.nodes, batch_per_device=batch, step_seconds=0.001,
                     gradient_square=2, gradient_variance=3, progress=progress)
    if told.stop:
        agent.checkpointed(progress)
        agent.close()
        sys.exit(STOPPED)
    time.sleep(0.001)
