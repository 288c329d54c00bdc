// A certified OpenID provider (node-oidc-provider) for tests: whoever types a name is that person. Loopback only.
//
// argv: port, JSON { clients, groups }. POST /control { keys: "new" } turns its keys, { code_ttl_s } changes the life of codes.
// "ada:2" is another person whose user name is "ada".

import { generateKeyPairSync, randomBytes } from "node:crypto";
import { createServer } from "node:http";

const library = new URL("../../web/node_modules/oidc-provider/lib/index.js", import.meta.url);
const { default: Provider } = await import(library.href);

const port = Number(process.argv[2]);
const { clients, groups } = JSON.parse(process.argv[3]);
const issuer = `http://127.0.0.1:${port}`;
let codeTtlS = 60;
let answer = makeProvider();

function makeKeys() {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { keys: [{ ...privateKey.export({ format: "jwk" }), kid: randomBytes(6).toString("hex"), use: "sig", alg: "RS256" }] };
}

function makeProvider() {
  const provider = new Provider(issuer, {
    clients,
    jwks: makeKeys(),
    cookies: { keys: [randomBytes(16).toString("hex")] },
    scopes: ["openid", "profile", "groups"],
    claims: { openid: ["sub"], profile: ["name", "preferred_username"], groups: ["groups"] },
    ttl: { AuthorizationCode: () => codeTtlS, AccessToken: 60, IdToken: 60, Interaction: 600, Session: 600, Grant: 600 },
    findAccount: (_, sub) => {
      const login = sub.split(":")[0];
      return {
        accountId: sub,
        claims: () => ({ sub, name: `${login} by name`, preferred_username: login, groups: groups[login] ?? [] }),
      };
    },
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
      grant.addOIDCScope(oidc.params.scope);
      await grant.save();
      return grant;
    },
  });
  return provider.callback();
}

async function control(request, response) {
  let body = "";
  for await (const piece of request) body += piece;
  const asked = JSON.parse(body);
  if (asked.code_ttl_s) codeTtlS = asked.code_ttl_s;
  if (asked.keys === "new") answer = makeProvider();
  response.end("{}");
}

createServer((request, response) =>
  request.url === "/control" ? control(request, response) : answer(request, response),
).listen(port, "127.0.0.1", () => console.log("ready"));
