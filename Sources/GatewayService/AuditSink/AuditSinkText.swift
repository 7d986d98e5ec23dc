import Foundation
import GatewayCore
import NIOCore
import StrictJSON

/// The second sink's lines: one JSON object each, written in exactly one way.
///
/// A record's line has all that its hash covers, so that the sink can be verified by itself.
enum AuditSinkText {
    /// How every line of a checkpoint begins.
    static let checkpointPrefix = Array(#"{"type":"checkpoint","#.utf8)

    /// A line, without the one after which it begins and with its own end.
    static func line(_ line: AuditSinkLine, key: String) -> [UInt8] {
        var writer = JSONWriter(reservingCapacity: 768)
        writer.beginObject()
        switch line {
        case .record(let record):
            writer.member("type", "record")
            AuditRecordText.write(record, to: &writer)
        case .cut(let cut, let ended):
            writer.member("type", "cut")
            writer.member("writer", cut.writer)
            writer.member("seq", cut.sequence)
            writer.member("time", cut.time.rfc3339)
            writer.key("time_us")
            writer.integer(cut.time.microseconds)
            writer.member("hash", Hex.text(cut.hash))
            if let ended { writer.member("ended", ended.rawValue) }
            writer.member("signature", Data(cut.signature).base64EncodedString())
        case .checkpoint(let checkpoint):
            writer.member("type", "checkpoint")
            writer.member("number", checkpoint.number)
            writer.member("time", checkpoint.content?.time.rfc3339 ?? "")
            writer.member("content", String(decoding: checkpoint.text, as: UTF8.self))
            writer.member("signature", Data(checkpoint.signature).base64EncodedString())
            writer.member("key", key)
        }
        writer.endObject()
        return Array(writer.finish().readableBytesView) + [UInt8(ascii: "\n")]
    }

    /// The word that what stands since a checkpoint is taken up again, because it was broken off.
    static func line(_ resumption: AuditSinkResumption) -> [UInt8] {
        var writer = JSONWriter(reservingCapacity: 256)
        writer.beginObject()
        writer.member("type", "resumed")
        writer.member("after", resumption.after)
        writer.member("skipped", resumption.skipped)
        writer.member("digest", Hex.text(resumption.digest))
        writer.member("signature", Data(resumption.signature).base64EncodedString())
        writer.endObject()
        return Array(writer.finish().readableBytesView) + [UInt8(ascii: "\n")]
    }

    /// What a line says, read back.
    enum Content {
        /// What the gateway delivers.
        case line(AuditSinkLine, key: String)
        /// What a sink says of itself.
        case resumed(AuditSinkResumption)
    }

    /// The content of a line without its end; `nil` for a line that the gateway would not have written.
    static func content(_ bytes: [UInt8]) -> Content? {
        guard let document = try? JSONDocument(parsing: ByteBuffer(bytes: bytes)),
            let content = self.content(document.root)
        else { return nil }
        // One comparison in place of a check of every member for its only form.
        let again =
            switch content {
            case .line(let line, let key): self.line(line, key: key)
            case .resumed(let resumption): self.line(resumption)
            }
        return again.dropLast().elementsEqual(bytes) ? content : nil
    }

    private static func content(_ root: StrictJSON.JSONValue) -> Content? {
        switch root.text("type") {
        case "record":
            return AuditRecordText.read(root).map { .line(.record($0), key: "") }
        case "cut":
            guard let writer = root.integer("writer"), let sequence = root.integer("seq"), let hash = root.hex("hash"),
                let time = root.integer("time_us"), let signature = root.base64("signature")
            else { return nil }
            let moment = Timestamp(microseconds: Int64(time))
            let cut = AuditCut(writer: writer, sequence: sequence, hash: hash, time: moment, signature: signature)
            return .line(.cut(cut, ended: root.text("ended").flatMap { AuditHead.State(rawValue: $0) }), key: "")
        case "checkpoint":
            guard let number = root.integer("number"), let text = root.text("content"), let key = root.text("key"),
                let signature = root.base64("signature")
            else { return nil }
            let checkpoint = SignedCheckpoint(number: number, text: Array(text.utf8), signature: signature)
            return .line(.checkpoint(checkpoint), key: key)
        case "resumed":
            guard let after = root.integer("after"), let skipped = root.integer("skipped"),
                let digest = root.hex("digest"),
                let signature = root.base64("signature")
            else { return nil }
            return .resumed(
                AuditSinkResumption(after: after, skipped: skipped, digest: digest, signature: signature)
            )
        default:
            return nil
        }
    }
}
