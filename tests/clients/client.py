"""A client of the daemon that shares no code with it: Python's grpcio, with stubs generated from our .proto and with
classes made from the descriptors that the daemon itself serves by reflection.

usage: client.py ADDRESS PROTO_FOLDER WORK_FOLDER

WORK_FOLDER holds porep.json (a C1 file, bare or wrapped) and window.json, winning.json, update.json (request files), made by
`cuzk sector fabricate`. Every check prints a line; the first failing one ends the script with code 1.
"""

import base64
import json
import pathlib
import subprocess
import sys
import time

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

ADDRESS, PROTO, WORK = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
OPTIONS = [("grpc.max_send_message_length", 256 << 20), ("grpc.max_receive_message_length", 256 << 20)]
SERVICE = "cuzk.v1.ProvingEngine"

# The contract: names and numbers of every field.
FIELDS = {
    "SubmitProofRequest": {
        "request_id": 1, "proof_kind": 2, "sector_size": 3, "registered_proof": 4, "priority": 5, "vanilla_proof": 10,
        "vanilla_proofs": 11, "sector_number": 20, "miner_id": 21, "randomness": 22, "partition_index": 23,
        "comm_r_old": 30, "comm_r_new": 31, "comm_d_new": 32,
    },
    "SubmitProofResponse": {"job_id": 1, "queue_position": 2, "assigned_gpu": 3},
    "AwaitProofRequest": {"job_id": 1, "timeout_ms": 2},
    "AwaitProofResponse": {
        "job_id": 1, "status": 2, "proof": 3, "error_message": 4, "queue_wait_ms": 10, "srs_load_ms": 11,
        "synthesis_ms": 12, "gpu_compute_ms": 13, "total_ms": 14,
    },
    "ProveRequest": {"submit": 1},
    "ProveResponse": {"result": 1},
    "CancelProofRequest": {"job_id": 1},
    "CancelProofResponse": {"was_running": 1},
    "GetStatusRequest": {},
    "GetStatusResponse": {
        "gpus": 1, "loaded_srs": 2, "queues": 3, "total_proofs_completed": 4, "total_proofs_failed": 5,
        "uptime_seconds": 6, "pinned_memory_bytes": 7, "pinned_memory_limit_bytes": 8,
    },
    "GPUStatus": {
        "ordinal": 1, "name": 2, "vram_total_bytes": 3, "vram_free_bytes": 4, "current_job_id": 5,
        "current_proof_kind": 6,
    },
    "SRSStatus": {"circuit_id": 1, "tier": 2, "size_bytes": 3, "ref_count": 4},
    "QueueStatus": {"proof_kind": 1, "pending": 2, "in_progress": 3},
    "PreloadSrsRequest": {"circuit_id": 1},
    "PreloadSrsResponse": {"already_loaded": 1, "load_time_ms": 2},
    "EvictSrsRequest": {"circuit_id": 1},
    "EvictSrsResponse": {"was_loaded": 1, "freed_bytes": 2},
    "GetMetricsRequest": {},
    "GetMetricsResponse": {"prometheus_text": 1},
}
ENUMS = {
    "ProofKind": ["PROOF_KIND_UNSPECIFIED", "POREP_SEAL_COMMIT", "SNAP_DEALS_UPDATE", "WINDOW_POST_PARTITION", "WINNING_POST"],
    "Priority": ["PRIORITY_UNSPECIFIED", "LOW", "NORMAL", "HIGH", "CRITICAL"],
    "AwaitProofResponse.Status": ["UNKNOWN", "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"],
    "SRSStatus.Tier": ["HOT", "WARM", "COLD"],
}
METHODS = {
    "SubmitProof": "SubmitProof", "AwaitProof": "AwaitProof", "Prove": "Prove", "CancelProof": "CancelProof",
    "GetStatus": "GetStatus", "GetMetrics": "GetMetrics", "PreloadSRS": "PreloadSrs", "EvictSRS": "EvictSrs",
}


def check(what, truth, detail=""):
    print("ok  " if truth else "FAIL", what, "" if truth else detail, flush=True)
    if not truth:
        sys.exit(1)


def reflected(channel):
    """Message classes and stubs from the daemon's own descriptors, compared with the contract."""
    database = ProtoReflectionDescriptorDatabase(channel)
    services = set(database.get_services())
    check("reflection lists the services", {SERVICE, "grpc.health.v1.Health"} <= services, services)
    pool = descriptor_pool.DescriptorPool(database)
    service = pool.FindServiceByName(SERVICE)
    methods = {m.name: (m.input_type.name, m.output_type.name) for m in service.methods}
    expected = {rpc: (stem + "Request", stem + "Response") for rpc, stem in METHODS.items()}
    check("the methods are the contract's", methods == expected, methods)
    classes = {}
    for name, fields in FIELDS.items():
        message = pool.FindMessageTypeByName("cuzk.v1." + name)
        found = {field.name: field.number for field in message.fields}
        check(f"{name} has the contract's fields", found == fields, found)
        classes[name] = message_factory.GetMessageClass(message)
    for name, values in ENUMS.items():
        found = [v.name for v in sorted(pool.FindEnumTypeByName("cuzk.v1." + name).values, key=lambda v: v.number)]
        check(f"{name} has the contract's values", found == values, found)
    calls = {
        rpc: channel.unary_unary(
            f"/{SERVICE}/{rpc}",
            request_serializer=classes[stem + "Request"].SerializeToString,
            response_deserializer=classes[stem + "Response"].FromString,
        )
        for rpc, stem in METHODS.items()
    }
    return classes, calls


def generated(channel):
    """The module and the stub that protoc makes from the .proto."""
    out = WORK / "generated"
    out.mkdir(exist_ok=True)
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}", f"--python_out={out}", f"--grpc_python_out={out}",
         "cuzk/v1/proving.proto"],
        check=True,
    )
    sys.path.insert(0, str(out))
    from cuzk.v1 import proving_pb2, proving_pb2_grpc

    return proving_pb2, proving_pb2_grpc.ProvingEngineStub(channel)


def document(name):
    return json.loads((WORK / f"{name}.json").read_text())


def bytes_of(doc, field):
    return base64.b64decode(doc.get(field, ""))


def requests(pb):
    """One request of each kind, field by field as the contract lists them."""
    c1 = (WORK / "porep.json").read_bytes()
    wrapper = json.loads(c1)
    if "Phase1Out" not in wrapper:
        wrapper = {"SectorNum": 42, "Phase1Out": base64.b64encode(c1).decode(), "SectorSize": 2048}
    update, window, winning = document("update"), document("window"), document("winning")
    proofs = lambda doc: [base64.b64decode(p) for p in doc["vanilla_proofs"]]
    common = lambda doc: dict(
        sector_size=2048, registered_proof=doc.get("registered_proof", 0), miner_id=doc.get("miner_id", 0),
        vanilla_proofs=proofs(doc),
    )
    return {
        "porep": pb.SubmitProofRequest(
            request_id="porep-1000-42", proof_kind=pb.POREP_SEAL_COMMIT, sector_size=2048, priority=pb.NORMAL,
            vanilla_proof=json.dumps(wrapper).encode(), sector_number=wrapper["SectorNum"], miner_id=0,
        ),
        "update": pb.SubmitProofRequest(
            request_id="snap-1000-43", proof_kind=pb.SNAP_DEALS_UPDATE, priority=pb.NORMAL, **common(update),
            comm_r_old=bytes_of(update, "comm_r_old"), comm_r_new=bytes_of(update, "comm_r_new"),
            comm_d_new=bytes_of(update, "comm_d_new"),
        ),
        "window": pb.SubmitProofRequest(
            request_id="wdpost-1000-0", proof_kind=pb.WINDOW_POST_PARTITION, priority=pb.HIGH, **common(window),
            randomness=bytes_of(window, "randomness"), partition_index=window.get("partition_index", 0),
        ),
        "winning": pb.SubmitProofRequest(
            request_id="winning-1000-1", proof_kind=pb.WINNING_POST, priority=pb.CRITICAL, **common(winning),
            randomness=bytes_of(winning, "randomness"),
        ),
    }


def code_of(call):
    try:
        call()
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def wait_until(truth, seconds=60):
    end = time.monotonic() + seconds
    while not truth():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def cancelled(stub, pb):
    """How many jobs were cancelled so far."""
    text = stub.GetMetrics(pb.GetMetricsRequest()).prometheus_text
    return next(int(line.split()[-1]) for line in text.splitlines() if line.startswith('cuzk_jobs_total{state="cancelled"}'))


def main():
    channel = grpc.insecure_channel(ADDRESS, options=OPTIONS)
    grpc.channel_ready_future(channel).result(timeout=20)
    health = health_pb2_grpc.HealthStub(channel)
    check("the service is healthy",
          health.Check(health_pb2.HealthCheckRequest(service=SERVICE)).status == health_pb2.HealthCheckResponse.SERVING)
    classes, calls = reflected(channel)
    pb, stub = generated(channel)
    all_kinds = requests(pb)

    results = {}
    for kind in ("window", "winning"):
        answer = stub.Prove(pb.ProveRequest(submit=all_kinds[kind]), timeout=900)
        result = answer.result
        check(f"{kind}: Prove returns a completed result", answer.HasField("result") and result.status == pb.AwaitProofResponse.COMPLETED, result)
        check(f"{kind}: 192 bytes and no error", len(result.proof) == 192 and not result.error_message, result)
        results[kind] = result
        (WORK / f"{kind}.proof").write_bytes(result.proof)

    # The same bytes by the classes that reflection made: the same job, the same proof.
    again = classes["ProveRequest"]()
    again.submit.ParseFromString(all_kinds["window"].SerializeToString())
    result = calls["Prove"](again, timeout=900).result
    check("the same request id is the same job", (result.job_id, result.proof) == (results["window"].job_id, results["window"].proof))
    other = pb.SubmitProofRequest()
    other.CopyFrom(all_kinds["window"])
    other.randomness = bytes(32)
    check("another request under this id is ALREADY_EXISTS", code_of(lambda: stub.SubmitProof(other)) == grpc.StatusCode.ALREADY_EXISTS)

    # The jobs of the large circuits wait behind two others and are cancelled.
    busy = []
    for number in range(2):
        request = pb.SubmitProofRequest()
        request.CopyFrom(all_kinds["winning"])
        request.request_id = f"busy-{number}"
        busy.append(stub.SubmitProof(request).job_id)
    for kind in ("porep", "update"):
        request = all_kinds[kind]
        request.priority = pb.LOW
        job = stub.SubmitProof(request).job_id
        status = stub.GetStatus(pb.GetStatusRequest())
        check(f"{kind}: the queues count it", sum(q.pending + q.in_progress for q in status.queues) > 0, status)
        stub.CancelProof(pb.CancelProofRequest(job_id=job))
        answer = stub.AwaitProof(pb.AwaitProofRequest(job_id=job, timeout_ms=60000))
        check(f"{kind}: submitted and cancelled", answer.status == pb.AwaitProofResponse.CANCELLED, answer)

    late = pb.SubmitProofRequest()
    late.CopyFrom(all_kinds["winning"])
    late.request_id, late.priority = "late", pb.LOW
    before = cancelled(stub, pb)
    check("a short deadline ends the call", code_of(lambda: stub.Prove(pb.ProveRequest(submit=late), timeout=0.2)) == grpc.StatusCode.DEADLINE_EXCEEDED)
    check("and its job is cancelled", wait_until(lambda: cancelled(stub, pb) == before + 1))

    late.request_id = "given-up"
    call = stub.Prove.future(pb.ProveRequest(submit=late))
    time.sleep(0.5)
    call.cancel()
    check("a call that is given up cancels its job", wait_until(lambda: cancelled(stub, pb) == before + 2))

    answer = stub.AwaitProof(pb.AwaitProofRequest(job_id=busy[-1], timeout_ms=1))
    check("waiting ends in time", answer.status in (pb.AwaitProofResponse.TIMEOUT, pb.AwaitProofResponse.COMPLETED), answer)
    for job in busy:
        stub.CancelProof(pb.CancelProofRequest(job_id=job))
    answer = stub.AwaitProof(pb.AwaitProofRequest(job_id="nobody", timeout_ms=1))
    check("an unknown job is UNKNOWN", answer.status == pb.AwaitProofResponse.UNKNOWN, answer)
    check("metrics are Prometheus text", "cuzk_jobs_total" in stub.GetMetrics(pb.GetMetricsRequest()).prometheus_text)
    print("all checks passed")


main()
