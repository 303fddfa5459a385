/** The TypeScript SDK's client of the first generation: `node sdk_v1.mjs CLIENTS ERA WORKFLOW COMMAND...`. */
import { createRequire } from 'node:module';
import { play } from './play.mjs';

const [clients, , workflowId, command, ...args] = process.argv.slice(2);
const wanted = createRequire(`${clients}/`);
const { Client } = wanted('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = wanted('@modelcontextprotocol/sdk/client/stdio.js');
const { ElicitRequestSchema } = wanted('@modelcontextprotocol/sdk/types.js');

const asked = [];
const client = new Client({ name: 'sdk-v1', version: '1' }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, (request) => {
  asked.push(request.params.message);
  return { action: 'accept', content: { decision: 'confirm' } };
});
const transport = new StdioClientTransport({ command, args });
transport.setProtocolVersion = (version) => {
  transport.protocolVersion = version;
};
await client.connect(transport);
await play(client, workflowId, { asked, revision: transport.protocolVersion });
