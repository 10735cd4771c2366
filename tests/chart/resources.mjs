// Validates objects of KEDA, of the Prometheus operator and of the Gateway API with the types that those projects publish.
// Argument: the folder node_modules. Standard input: a JSON array of objects. Standard output: an array of faults.
import { pathToFileURL } from "node:url";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const PACKAGES = {
  "gateway.networking.k8s.io/v1": "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/index.js",
  "keda.sh/v1alpha1": "@kubernetes-models/keda/keda.sh/v1alpha1/index.js",
  "monitoring.coreos.com/v1": "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/index.js",
};

/** The fault of an object, or null. */
async function fault(object) {
  const file = PACKAGES[object.apiVersion];
  if (!file) return `no types for ${object.apiVersion} ${object.kind}`;
  const types = await import(pathToFileURL(join(process.argv[2], file)));
  const Type = types[object.kind];
  if (!Type) return `${object.apiVersion} has no ${object.kind}`;
  try {
    new Type(object).validate();
    return null;
  } catch (error) {
    return error.message;
  }
}

const objects = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(await Promise.all(objects.map(fault))));
