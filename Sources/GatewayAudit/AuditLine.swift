package import NIOCore
package import StrictJSON

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One line of a second sink: a JSON object that is written in exactly one way, so that nothing can be hidden in one.
///
/// A sink has records and truncation markers in the order of their delivery, and each checkpoint behind what it covers.
package enum AuditLine: Sendable, Hashable {
    /// A checkpoint, with the name of the sink that it was delivered to.
    case checkpoint(SignedCheckpoint, sink: String)
    /// The beginning of a chain whose oldest records were removed; `ended` is the chain's last state if all of it was
    /// removed.
    case truncation(AuditTruncation, ended: AuditHead.State?)
    case record(ChainedAuditRecord)
}

// MARK: Writing

extension AuditLine {
    /// The beginning of every checkpoint's line.
    package static let checkpointPrefix = Array(#"{"type":"checkpoint","#.utf8)

    package var text: ByteBuffer {
        var writer = JSONWriter(reservingCapacity: 768)
        writer.beginObject()
        switch self {
        case .checkpoint(let checkpoint, let sink):
            writer.member("type", "checkpoint")
            writer.member("sink", sink)
            writer.member("number", checkpoint.number)
            writer.member("time", checkpoint.content?.time.rfc3339 ?? "")
            writer.member("content", String(decoding: checkpoint.text, as: UTF8.self))
            writer.member("signature", Data(checkpoint.signature).base64EncodedString())
        case .truncation(let truncation, let ended):
            writer.member("type", "truncation")
            writer.place(truncation.writer, truncation.sequence)
            writer.members("time", "time_us", truncation.time)
            if let ended { writer.member("ended", ended.rawValue) }
            writer.member("hash", Hex.text(truncation.hash))
            writer.member("signature", Data(truncation.signature).base64EncodedString())
        case .record(let record):
            writer.member("type", "record")
            writer.members(of: record, for: .verifier)
        }
        writer.endObject()
        return writer.finish()
    }
}

/// The reader for whom a record is written as JSON.
package enum AuditReader: Sendable {
    /// A tenant, which sees no places: they count the records of all tenants.
    case tenant
    case admin
    /// A verifier, which needs everything that the record's hash covers.
    case verifier
}

extension JSONWriter {
    package mutating func members(of chained: ChainedAuditRecord, for reader: AuditReader) {
        let record = chained.record
        let showsPlace = reader != .tenant
        if showsPlace { self.place(chained.writer, chained.sequence) }
        if reader == .verifier {
            self.members("time", "time_us", record.time)
        } else {
            self.member("time", record.time.rfc3339)
        }
        if let tenant = record.tenant { self.member("tenant", tenant) }
        if showsPlace, record.tenant != nil || record.tenantUID != 0 {
            self.member("tenant_uid", Hex.text(AuditCodec.bytes(of: record.tenantUID)))
        }
        self.member("principal", record.principal)
        if !record.method.isEmpty { self.member("method", record.method) }
        self.member("action", record.action)
        self.member("outcome", record.outcome.rawValue)
        if let code = record.code { self.member("code", code) }
        if let messageID = record.messageID { self.member("message", messageID) }
        if record.hasTargets { self.targets(of: record) }
        if let object = record.object { self.member("object", object) }
        if record.afterCheckpoint != 0 { self.member("after_checkpoint", record.afterCheckpoint) }
        if record.continuesWriter != 0 { self.member("continues_writer", record.continuesWriter) }
        if let upstreamCode = record.upstreamCode { self.member("upstream_code", upstreamCode) }
        if let fcmMessageID = record.fcmMessageID { self.member("fcm_message_id", fcmMessageID) }
        if !record.requestID.isEmpty { self.member("request_id", record.requestID) }
        if let traceID = record.traceID { self.member("trace_id", traceID) }
        self.member("hash", Hex.text(chained.hash))
    }

    private mutating func targets(of record: AuditRecord) {
        self.member("target_kind", record.targetKind)
        self.member("recipients", record.recipients)
        self.member("accepted", record.accepted)
        self.member("bytes", record.bytes)
        let targets = stride(from: 0, to: record.targets.count, by: Pseudonym.byteCount)
            .map { Hex.text(record.targets[$0..<min($0 + Pseudonym.byteCount, record.targets.count)]) }
        self.key("targets")
        self.beginArray()
        for target in targets { self.string(target) }
        self.endArray()
        guard !record.results.isEmpty else { return }
        self.key("results")
        self.beginArray()
        let first = targets.count - record.results.count
        for (index, result) in record.results.enumerated() {
            self.beginObject()
            if first + index >= 0 { self.member("target", targets[first + index]) }
            self.member("outcome", (result.code == nil ? AuditRecord.Outcome.accepted : .rejected).rawValue)
            if let code = result.code { self.member("code", code) }
            if let fcmMessageID = result.fcmMessageID { self.member("fcm_message_id", fcmMessageID) }
            self.endObject()
        }
        self.endArray()
    }

    fileprivate mutating func place(_ writer: Int, _ sequence: Int) {
        self.member("writer", writer)
        self.member("seq", sequence)
    }

    /// A moment for people, and exactly.
    fileprivate mutating func members(_ key: StaticString, _ exactKey: StaticString, _ time: Timestamp) {
        self.member(key, time.rfc3339)
        self.key(exactKey)
        self.integer(time.microseconds)
    }
}

extension AuditRecord {
    fileprivate var hasTargets: Bool {
        !self.targetKind.isEmpty || !self.targets.isEmpty || !self.results.isEmpty
            || (self.recipients, self.accepted, self.bytes) != (0, 0, 0)
    }
}

// MARK: Reading

extension AuditLine {
    /// A list of a thousand recipients has some thousand members.
    private static let limits = JSONLimits(maxMembers: 50_000, maxElements: 50_000, maxSpecialCharacters: 1 << 20)

    /// The line of a text without its end; `nil` for one that the gateway does not write.
    package init?(_ text: ByteBuffer) {
        guard let root = try? JSONDocument(parsing: text, limits: Self.limits).root, let line = try? AuditLine(root)
        else { return nil }
        // One comparison in place of a check of every member for its only form.
        guard line.text == text else { return nil }
        self = line
    }

    private init(_ root: JSONValue) throws(Absence) {
        switch root.text("type") {
        case "checkpoint":
            let (number, text) = (try present(root.integer("number")), try present(root.text("content")))
            let signature = try present(root.base64("signature"))
            self = .checkpoint(
                SignedCheckpoint(number: number, text: Array(text.utf8), signature: signature),
                sink: try present(root.text("sink"))
            )
        case "truncation":
            let (chain, time) = (try root.chain("seq"), try present(root.time("time_us")))
            let signature = try present(root.base64("signature"))
            let ended = root.text("ended").flatMap { AuditHead.State(rawValue: $0) }
            self = .truncation(AuditTruncation(chain, time: time, signature: signature), ended: ended)
        case "record":
            let (chain, entry) = (try root.chain("seq"), AuditChain.Entry(try AuditRecord(root)))
            self = .record(
                ChainedAuditRecord(writer: chain.writer, sequence: chain.sequence, entry: entry, hash: chain.hash)
            )
        default: throw Absence()
        }
    }
}

extension AuditRecord {
    fileprivate init(_ root: JSONValue) throws(Absence) {
        self.init(
            time: try present(root.time("time_us")),
            tenant: root.text("tenant"),
            principal: try present(root.text("principal")),
            action: try present(root.text("action")),
            outcome: try present(root.text("outcome").flatMap { Outcome(rawValue: $0) }),
            requestID: root.text("request_id") ?? ""
        )
        for byte in root.hex("tenant_uid") ?? [] { self.tenantUID = self.tenantUID << 8 | UInt64(byte) }
        if let targets = root["targets"]?.elements {
            for target in targets { self.targets += try present(target.string.flatMap { Hex.bytes($0) }) }
        }
        if let results = root["results"]?.elements {
            self.results = results.map { TargetResult(code: $0.text("code"), fcmMessageID: $0.text("fcm_message_id")) }
        }
        self.method = root.text("method") ?? ""
        self.targetKind = root.text("target_kind") ?? ""
        self.recipients = root.integer("recipients") ?? 0
        self.accepted = root.integer("accepted") ?? 0
        self.bytes = root.integer("bytes") ?? 0
        self.afterCheckpoint = root.integer("after_checkpoint") ?? 0
        self.continuesWriter = root.integer("continues_writer") ?? 0
        (self.object, self.code) = (root.text("object"), root.text("code"))
        (self.upstreamCode, self.fcmMessageID) = (root.text("upstream_code"), root.text("fcm_message_id"))
        (self.messageID, self.traceID) = (root.text("message"), root.text("trace_id"))
    }
}

/// A member that a line needs is not there, or of another kind.
private struct Absence: Error {}

private func present<Value>(_ value: Value?) throws(Absence) -> Value {
    guard let value else { throw Absence() }
    return value
}

/// Members by their kinds; `nil` for another kind or none.
extension JSONValue {
    /// Places that no gateway gets to; somebody may have written any.
    private static let placeLimit = 1 << 60

    fileprivate func text(_ key: String) -> String? { self[key]?.string }

    fileprivate func integer(_ key: String) -> Int? { self[key]?.number?.integer }

    fileprivate func time(_ key: String) -> Timestamp? {
        self.integer(key).map { Timestamp(microseconds: Int64($0)) }
    }

    fileprivate func hex(_ key: String) -> [UInt8]? { self.text(key).flatMap { Hex.bytes($0) } }

    fileprivate func base64(_ key: String) -> [UInt8]? {
        self.text(key).flatMap { Data(base64Encoded: $0) }.map { [UInt8]($0) }
    }

    /// A place of a chain, and the chain's hash there.
    fileprivate func chain(_ key: String) throws(Absence) -> AuditChain {
        guard let writer = self.integer("writer"), let sequence = self.integer(key), let hash = self.hex("hash"),
            (0..<Self.placeLimit).contains(writer), (0..<Self.placeLimit).contains(sequence)
        else { throw Absence() }
        return AuditChain(writer: writer, sequence: sequence, hash: hash)
    }
}
