import Foundation
import Logging
import Synchronization

/// Writes log lines as JSON objects, one a line, to standard error.
struct JSONLogHandler: LogHandler {
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    private let label: String
    private let output: LogOutput

    init(label: String, output: LogOutput) {
        self.label = label
        self.output = output
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { self.metadata[key] }
        set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var fields = self.metadata
        if let provided = self.metadataProvider?.get() { fields.merge(provided) { $1 } }
        if let own = event.metadata { fields.merge(own) { $1 } }
        var object: [String: String] = fields.mapValues { "\($0)" }
        object["time"] = Date().ISO8601Format(.init(includingFractionalSeconds: true))
        object["level"] = event.level.rawValue
        object["logger"] = self.label
        object["message"] = "\(event.message)"
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let line = try? encoder.encode(object) else { return }
        self.output.write(line + Data("\n".utf8))
    }
}
