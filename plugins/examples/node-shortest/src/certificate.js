// The certificate that the plugin shows to its host: self-signed, of localhost, on P-256. Node makes keys and signatures;
// the few structures around them are written here.
'use strict';
const { generateKeyPairSync, sign } = require('node:crypto');

// der is one element: a tag, a length, and what is inside.
function der(tag, ...parts) {
  const body = Buffer.concat(parts);
  if (body.length < 0x80) return Buffer.concat([Buffer.from([tag, body.length]), body]);
  const length = Buffer.from(body.length.toString(16).padStart(body.length > 0xff ? 4 : 2, '0'), 'hex');
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length]), length, body]);
}

const sequence = (...parts) => der(0x30, ...parts);
const hex = (text) => Buffer.from(text, 'hex');
const oid = (text) => der(0x06, hex(text));
const extension = (id, critical, value) =>
  sequence(oid(id), ...(critical ? [der(0x01, hex('ff'))] : []), der(0x04, value));

// newCertificate returns the key in PEM, and the certificate in PEM and in the form of the handshake.
function newCertificate() {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = sequence(oid('2a8648ce3d040302')); // ecdsa-with-SHA256
  const name = sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from('localhost')))));
  const validity = sequence(der(0x17, Buffer.from('000101000000Z')), der(0x18, Buffer.from('21000101000000Z'))); // it ends with the process
  const extensions = sequence(
    extension('551d11', false, sequence(der(0x82, Buffer.from('localhost')))), // subject alternative name
    extension('551d13', true, sequence(der(0x01, hex('ff')))), // CA:TRUE
  );
  const content = sequence(
    der(0xa0, der(0x02, hex('02'))), // version 3
    der(0x02, hex('01')), // serial number
    algorithm, name, validity, name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, extensions),
  );
  const signature = sign('sha256', content, privateKey);
  const certificate = sequence(content, algorithm, der(0x03, hex('00'), signature)).toString('base64');
  return {
    key: Buffer.from(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    pem: Buffer.from(`-----BEGIN CERTIFICATE-----\n${certificate.match(/.{1,64}/g).join('\n')}\n-----END CERTIFICATE-----\n`),
    handshake: certificate.replace(/=+$/, ''),
  };
}

module.exports = { newCertificate };
