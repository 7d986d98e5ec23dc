package import NIOCore
package import StrictJSON

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One line of a second sink or of an export: a JSON object that is written in exactly one way, so that nothing can be
/// hidden in one.
///
/// A sink has records and truncation markers as they came, and each checkpoint behind what it covers. An export begins with
/// ``export(_:)``, tells then what was signed and how the chains end, then stretches of records by rising place, and ends with
/// ``end(_:)``.
package enum AuditLine: Sendable, Hashable {
    case export(AuditExportHead)
    case checkpoint(SignedCheckpoint)
    /// Where a chain begins whose oldest records were removed.
    ///
    /// In a sink, `ended` tells how the chain ended when nothing of it is left to tell that.
    case truncation(AuditTruncation, ended: AuditHead.State?)
    case head(AuditHead)
    case stretch(AuditStretch)
    case record(ChainedAuditRecord)
    case hidden(HiddenAuditRecords)
    case end(AuditExportSummary)
}

/// What an export is.
package struct AuditExportHead: Sendable, Hashable {
    static let version = 2

    /// Whose records can be read, from when on and before when; `nil` where that is not narrowed.
    package var tenant: String?
    package var from: Timestamp?
    package var to: Timestamp?
    /// Whether a process wrote to the store meanwhile.
    package var isLive: Bool
    /// The chains that replicas wrote meanwhile, rising, where several share the store.
    package var liveWriters: [Int] = []

    package init(tenant: String? = nil, from: Timestamp? = nil, to: Timestamp? = nil, isLive: Bool) {
        (self.tenant, self.from, self.to, self.isLive) = (tenant, from, to, isLive)
    }

    /// Whether every chain is there as a whole.
    package var isWhole: Bool { self.tenant == nil && self.from == nil && self.to == nil }

    func shows(_ entry: AuditEntry) -> Bool {
        if let tenant = self.tenant, entry.tenant != tenant { return false }
        if let from = self.from, entry.time < from { return false }
        if let to = self.to, entry.time >= to { return false }
        return true
    }
}

/// Neighbouring records of a chain in an export, between two places that are signed.
package struct AuditStretch: Sendable, Hashable {
    /// The chain's end before the first record.
    package var start: AuditChain
    package var through: Int
}

/// How much an export has.
package struct AuditExportSummary: Sendable, Hashable {
    package var records = 0
    /// Records of which only the digest is there.
    package var hidden = 0
    /// Records before the chains' beginnings, which were removed because of their age.
    package var removed = 0
    package var checkpoints = 0

    package init(records: Int = 0, hidden: Int = 0, removed: Int = 0, checkpoints: Int = 0) {
        (self.records, self.hidden, self.removed) = (records, hidden, removed)
        self.checkpoints = checkpoints
    }
}

// MARK: Writing

extension AuditLine {
    /// How every line of a checkpoint begins.
    package static let checkpointPrefix = Array(#"{"type":"checkpoint","#.utf8)

    package var text: ByteBuffer {
        var writer = JSONWriter(reservingCapacity: 768)
        writer.beginObject()
        switch self {
        case .export(let head):
            writer.member("fcm_gateway_audit_export", AuditExportHead.version)
            if let tenant = head.tenant { writer.member("tenant", tenant) }
            if let from = head.from { writer.members("from", "from_us", from) }
            if let to = head.to { writer.members("to", "to_us", to) }
            writer.member("live", head.isLive)
            if !head.liveWriters.isEmpty {
                writer.key("live_writers")
                writer.beginArray()
                for live in head.liveWriters { writer.integer(live) }
                writer.endArray()
            }
        case .checkpoint(let checkpoint):
            writer.member("type", "checkpoint")
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
        case .head(let head):
            writer.member("type", "head")
            writer.place(head.writer, head.sequence)
            writer.member("state", head.state.rawValue)
            writer.member("hash", Hex.text(head.hash))
            writer.member("seal", Hex.text(head.seal))
        case .stretch(let stretch):
            writer.member("type", "stretch")
            writer.member("writer", stretch.start.writer)
            writer.member("after", stretch.start.sequence)
            writer.member("hash", Hex.text(stretch.start.hash))
            writer.member("through", stretch.through)
        case .record(let record):
            writer.member("type", "record")
            writer.members(of: record, for: .verifier)
        case .hidden(let hidden):
            writer.member("type", "hidden")
            writer.place(hidden.writer, hidden.sequence)
            writer.member("digests", Data(hidden.digests.joined()).base64EncodedString())
            writer.member("hash", Hex.text(hidden.hash))
        case .end(let summary):
            writer.member("type", "end")
            writer.member("records", summary.records)
            writer.member("hidden", summary.hidden)
            writer.member("removed", summary.removed)
            writer.member("checkpoints", summary.checkpoints)
        }
        writer.endObject()
        return writer.finish()
    }
}

/// Who is shown a record as JSON.
package enum AuditReader: Sendable {
    /// A tenant, which sees no places: they count the records of all tenants.
    case tenant
    case admin
    /// Whoever checks the record: all is there that its hash covers.
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
        case nil:
            guard root.integer("fcm_gateway_audit_export") == AuditExportHead.version else { throw Absence() }
            let isLive = try present(root["live"]?.bool)
            let (from, to) = (root.time("from_us"), root.time("to_us"))
            var head = AuditExportHead(tenant: root.text("tenant"), from: from, to: to, isLive: isLive)
            if let writers = root["live_writers"]?.elements {
                head.liveWriters = writers.compactMap { $0.number?.integer }
            }
            self = .export(head)
        case "checkpoint":
            let (number, text) = (try present(root.integer("number")), try present(root.text("content")))
            let signature = try present(root.base64("signature"))
            self = .checkpoint(SignedCheckpoint(number: number, text: Array(text.utf8), signature: signature))
        case "truncation":
            let (chain, time) = (try root.chain("seq"), try present(root.time("time_us")))
            let signature = try present(root.base64("signature"))
            let ended = root.text("ended").flatMap { AuditHead.State(rawValue: $0) }
            self = .truncation(AuditTruncation(chain, time: time, signature: signature), ended: ended)
        case "head":
            let (chain, seal) = (try root.chain("seq"), try present(root.hex("seal")))
            let state = try present(root.text("state").flatMap { AuditHead.State(rawValue: $0) })
            self = .head(AuditHead(chain, state: state, seal: seal))
        case "stretch":
            self = .stretch(AuditStretch(start: try root.chain("after"), through: try root.chain("through").sequence))
        case "record":
            let (chain, entry) = (try root.chain("seq"), AuditEntry(try AuditRecord(root)))
            self = .record(
                ChainedAuditRecord(writer: chain.writer, sequence: chain.sequence, entry: entry, hash: chain.hash)
            )
        case "hidden":
            let (chain, bytes) = (try root.chain("seq"), try present(root.base64("digests")))
            guard (1...HiddenAuditRecords.maxCount * 32).contains(bytes.count), bytes.count.isMultiple(of: 32)
            else { throw Absence() }
            let digests = stride(from: 0, to: bytes.count, by: 32).map { Array(bytes[$0..<($0 + 32)]) }
            self = .hidden(
                HiddenAuditRecords(writer: chain.writer, sequence: chain.sequence, digests: digests, hash: chain.hash)
            )
        case "end":
            var summary = AuditExportSummary()
            summary.records = try present(root.integer("records"))
            summary.hidden = try present(root.integer("hidden"))
            summary.removed = try present(root.integer("removed"))
            summary.checkpoints = try present(root.integer("checkpoints"))
            self = .end(summary)
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
