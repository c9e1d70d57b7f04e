#!/usr/bin/env python3
"""Makes JSON schemas for kubeconform out of what an API server says of itself.

Usage: openapi_schemas.py FOLDER GROUP_VERSION...      for example: apis/apps/v1 api/v1
Reads /openapi/v3/GROUP_VERSION with kubectl, and writes one strict schema a kind, named
as kubeconform names them: deployment-apps-v1.json, lease-coordination-v1.json, pod-v1.json. Strict:
unknown fields are errors, where the server would drop them.
"""
import json
import pathlib
import subprocess
import sys

REFERENCE = "#/components/schemas/"


def as_json_schema(node):
    """OpenAPI 3.0 to JSON schema: references, nullable, and no unknown fields."""
    if isinstance(node, list):
        return [as_json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    schema = {key: as_json_schema(value) for key, value in node.items()}
    reference = schema.get("$ref")
    if isinstance(reference, str):
        schema["$ref"] = "#/definitions/" + reference.removeprefix(REFERENCE)
    if schema.get("nullable") is True and isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
    is_closed = (isinstance(schema.get("properties"), dict)
                 and "additionalProperties" not in schema
                 and not schema.get("x-kubernetes-preserve-unknown-fields"))
    # A schema *named* "properties" is a map of fields, not a schema with fields.
    if is_closed and schema.get("type") in ("object", ["object", "null"]):
        schema["additionalProperties"] = False
    return schema


def with_object_fields(schema):
    """Kind, version and metadata, which embedded objects (and some servers) leave unsaid."""
    for field in ("apiVersion", "kind"):
        schema.get("properties", {}).setdefault(field, {"type": "string"})
    return schema


def kinds_of(schema):
    return schema.get("x-kubernetes-group-version-kind", [])


def write_schemas(folder, document):
    definitions = {name: as_json_schema(schema)
                   for name, schema in document["components"]["schemas"].items()}
    for name, schema in definitions.items():
        if len(kinds_of(schema)) != 1 or "metadata" not in schema.get("properties", {}):
            continue  # DeleteOptions and the like belong to every group
        kind = kinds_of(schema)[0]
        words = [kind["kind"], kind["group"].split(".")[0], kind["version"]]
        file = "-".join(word for word in words if word).lower() + ".json"
        standalone = dict(with_object_fields(schema), definitions=definitions)
        (folder / file).write_text(json.dumps(standalone))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for group_version in sys.argv[2:]:
        answer = subprocess.run(["kubectl", "get", "--raw", "/openapi/v3/" + group_version],
                                check=True, capture_output=True, text=True).stdout
        write_schemas(folder, json.loads(answer))


if __name__ == "__main__":
    main()
