// The life of the process: handshake, service, and an end that follows the host's.
'use strict';
const path = require('node:path');
const grpc = require('@grpc/grpc-js');
const { service } = require('./contract');
const { newCertificate } = require('./certificate');
const { Server, answering, NAME, VERSION, PROTOCOL } = require('./server');
const { component } = require('./shortest');

const COOKIE = 'd0a1d3f3-9d5f-4f6b-8f0c-4f9c5a1e7b52';
const MAX_MESSAGE = 64 << 20;
const LOOK_FOR_HOST_MS = 500;
const LAST_ANSWER_MS = 200;

// bytes describes a call whose messages are too small to generate.
const bytes = (name) => ({
  path: name, requestStream: false, responseStream: false,
  requestSerialize: (b) => b, requestDeserialize: (b) => b, responseSerialize: (b) => b, responseDeserialize: (b) => b,
});

function main() {
  if (process.env.QUARTET_PLUGIN !== COOKIE) {
    console.log(`${NAME} ${VERSION} is a plugin of Quartet, which starts it. It serves:\n  allocation/${component.type}: ${component.summary}`);
    return;
  }
  const host = process.ppid;
  const print = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr); // stdout belongs to the handshake

  const policy = new Server();
  const server = new grpc.Server({ 'grpc.max_receive_message_length': MAX_MESSAGE, 'grpc.max_send_message_length': MAX_MESSAGE });
  server.addService(service('BaseService', 'Describe', 'Configure', 'Health'), {
    Describe: answering(() => policy.describe()),
    Configure: answering((request) => policy.configure(request)),
    Health: answering(() => policy.health()),
  });
  server.addService(service('AllocationService', 'Allocate'), { Allocate: answering((request) => policy.allocate(request)) });
  server.addService({ Check: bytes('/grpc.health.v1.Health/Check') }, {
    Check: answering(() => Buffer.from([0x08, 0x01])), // status: SERVING
  });
  server.addService({ Shutdown: bytes('/plugin.GRPCController/Shutdown') }, {
    Shutdown: (call, done) => {
      done(null, Buffer.alloc(0));
      setTimeout(() => process.exit(0), LAST_ANSWER_MS);
      server.tryShutdown(() => process.exit(0));
    },
  });

  const { credentials, handshake } = secure(process.env.PLUGIN_CLIENT_CERT);
  const socket = path.join(process.env.PLUGIN_UNIX_SOCKET_DIR || require('node:os').tmpdir(), `plugin${process.pid}`);
  server.bindAsync(`unix:${socket}`, credentials, (error) => {
    if (error) {
      console.error(error.message);
      process.exit(1);
    }
    print(`1|${PROTOCOL}|unix|${socket}|grpc|${handshake}\n`);
  });

  process.on('SIGINT', () => {}); // the host ends its plugins in its own time
  process.on('SIGTERM', () => process.exit(0));
  setInterval(() => {
    if (process.ppid !== host) process.exit(1);
  }, LOOK_FOR_HOST_MS);
}

// secure are the credentials of the server: mutual TLS if the host sent a certificate.
function secure(hostCertificate) {
  if (!hostCertificate) return { credentials: grpc.ServerCredentials.createInsecure(), handshake: '' };
  const { key, pem, handshake } = newCertificate();
  const pair = [{ private_key: key, cert_chain: pem }];
  return { credentials: grpc.ServerCredentials.createSsl(Buffer.from(hostCertificate), pair, true), handshake };
}

main();
