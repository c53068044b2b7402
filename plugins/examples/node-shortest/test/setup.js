// Lets the sources be loaded without the bundler, which reads .proto files as text.
'use strict';
const { readFileSync } = require('node:fs');

require.extensions['.proto'] = (module, file) => {
  module.exports = readFileSync(file, 'utf8');
};
