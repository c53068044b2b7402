"""A replica of the same training by quartet_torch: reads samples and first parameters from a file, and writes what it came to."""

import json
import sys

import torch
import torch.nn.functional as F
import quartet_torch

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
with open(sys.argv[1]) as file:
    task = json.load(file)
layers = []
for layer in task["Layers"]:
    linear = torch.nn.Linear(len(layer["Weights"][0]), len(layer["Biases"]))
    with torch.no_grad():
        linear.weight.copy_(torch.tensor(layer["Weights"]))
        linear.bias.copy_(torch.tensor(layer["Biases"]))
    layers += [linear, torch.nn.Tanh()]
net = torch.nn.Sequential(*layers[:-1])
with quartet_torch.init() as job:
    model = job.model(net)
    optimizer = job.optimizer(torch.optim.SGD(model.parameters(), task["Rate"]))
    samples = torch.utils.data.TensorDataset(torch.tensor(task["Features"]), torch.tensor(task["Labels"]))
    for inputs, labels in job.loader(samples, task["Batch"], shuffle=False):  # they are in the order of the other training
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
if job.rank == 0:
    parameters = torch.cat([p.reshape(-1) for p in net.parameters()]).tolist()
    json.dump({"Noise": job.noise_scale, "Progress": job.progress, "Parameters": parameters}, sys.stdout)
