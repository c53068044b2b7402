// The messages of the contract, from its own files.
'use strict';
const protobuf = require('protobufjs');
const base = require('../../../proto/quartet/stage/v1/base.proto');
const stages = require('../../../proto/quartet/stage/v1/stages.proto');
const view = require('../../../proto/quartet/stage/v1/view.proto');

const root = new protobuf.Root();
for (const text of [base, view, stages]) protobuf.parse(text, root, { keepCase: true });
root.resolveAll();

const PACKAGE = 'quartet.stage.v1';

// message is the type of a message of the contract.
const message = (name) => root.lookupType(`${PACKAGE}.${name}`);

// values are the numbers of an enum by name.
const values = (name) => root.lookupEnum(`${PACKAGE}.${name}`).values;

// call describes a unary call to grpc-js.
function call(path, request, answer) {
  return {
    path,
    requestStream: false,
    responseStream: false,
    requestDeserialize: (bytes) => request.decode(bytes),
    responseSerialize: (value) => Buffer.from(answer.encode(answer.fromObject(value)).finish()),
    requestSerialize: (value) => Buffer.from(request.encode(value).finish()),
    responseDeserialize: (bytes) => answer.decode(bytes),
  };
}

// service describes calls of a service of the contract.
function service(name, ...methods) {
  const calls = {};
  for (const method of methods) {
    calls[method] = call(`/${PACKAGE}.${name}/${method}`, message(`${method}Request`), message(`${method}Response`));
  }
  return calls;
}

module.exports = { message, values, service };
