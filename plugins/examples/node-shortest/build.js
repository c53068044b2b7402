// Writes dist/node-shortest: one executable file with everything in it, for one file is what quartet installs.
'use strict';
const { buildSync } = require('esbuild');
const { chmodSync } = require('node:fs');

const outfile = 'dist/node-shortest';
buildSync({
  entryPoints: ['src/main.js'],
  outfile,
  bundle: true,
  platform: 'node',
  target: 'node20',
  loader: { '.proto': 'text' },
  banner: { js: '#!/usr/bin/env node' },
});
chmodSync(outfile, 0o755);
