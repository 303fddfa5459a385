/** The TypeScript SDK's client of the second generation: `node sdk_v2.mjs CLIENTS ERA WORKFLOW COMMAND...`. */
import { createRequire } from 'node:module';
import { play } from './play.mjs';

const [clients, era, workflowId, command, ...args] = process.argv.slice(2);
const wanted = createRequire(`${clients}/`);
const { Client } = wanted('@modelcontextprotocol/client');
const { StdioClientTransport } = wanted('@modelcontextprotocol/client/stdio');

const asked = [];
const client = new Client(
  { name: 'sdk-v2', version: '1' },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: era } },
);
client.setRequestHandler('elicitation/create', (request) => {
  asked.push(request.params.message);
  return { action: 'accept', content: { decision: 'confirm' } };
});
await client.connect(new StdioClientTransport({ command, args }));
await play(client, workflowId, { asked, revision: client.getNegotiatedProtocolVersion() });
