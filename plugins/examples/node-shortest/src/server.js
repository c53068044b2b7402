// The calls of the host and their answers.
'use strict';
const { status } = require('@grpc/grpc-js');
const { values } = require('./contract');
const { View } = require('./view');
const { component, settings, allocate } = require('./shortest');
const { schemaOf, fieldsOf, decode } = require('./settings');

const NAME = 'node-shortest';
const VERSION = 'v0.1.0';
const PROTOCOL = 1;

const { STAGE_ALLOCATION } = values('Stage');

// Refusal is a call that cannot be answered.
class Refusal extends Error {
  constructor(code, text) {
    super(text);
    this.code = code;
  }
}

class Server {
  // describe says what the plugin holds.
  describe() {
    return {
      name: NAME, version: VERSION, min_protocol: PROTOCOL, max_protocol: PROTOCOL,
      components: [{
        ...component, stage: STAGE_ALLOCATION,
        config_schema_json: JSON.stringify(schemaOf(component, settings)), fields_json: JSON.stringify(fieldsOf(settings)),
      }],
    };
  }

  // configure checks settings, and makes the policy that this process serves from now on.
  configure(request) {
    if (request.stage !== STAGE_ALLOCATION || request.type !== component.type) {
      throw new Refusal(status.NOT_FOUND, `no component "${request.type}" of that stage; the plugin serves allocation/${component.type}`);
    }
    const { config, problems } = decode(settings, request.config_json);
    if (problems.length > 0) return { diagnostics: problems };
    if (!request.check_only) {
      this.config = config;
      this.view = new View();
    }
    return { capabilities: component.capabilities, config_json: JSON.stringify(config) };
  }

  health() {
    return {};
  }

  // allocate asks the policy. The whole list of grants is sent each time, as one insertion.
  allocate(request) {
    if (!this.view) throw new Refusal(status.FAILED_PRECONDITION, 'the plugin was not configured');
    let known;
    try {
      known = this.view.apply(request.view);
    } catch (e) {
      throw new Refusal(status.INVALID_ARGUMENT, `view: ${e.message}`);
    }
    if (!known) return { resync: true };
    const grants = allocate(this.view, this.config);
    return {
      edit: { steps: grants.length > 0 ? [0, 0, grants.length] : [] }, grants,
      standing: { until_seconds: Infinity, if_seated: grants.length }, // the order depends on no time
    };
  }
}

// answering makes a method a handler of grpc-js.
function answering(method) {
  return (call, done) => {
    let answer;
    try {
      answer = method(call.request);
    } catch (e) {
      const refused = e instanceof Refusal;
      if (!refused) log('error', 'the policy failed', { stack: e.stack });
      done({ code: refused ? e.code : status.INTERNAL, details: refused ? e.message : `the policy failed: ${e.message}` });
      return;
    }
    done(null, answer);
  };
}

// log writes a record as the host reads it.
function log(level, text, more) {
  process.stderr.write(JSON.stringify({ '@level': level, '@message': text, '@timestamp': new Date().toISOString(), ...more }) + '\n');
}

module.exports = { Server, answering, log, NAME, VERSION, PROTOCOL };
