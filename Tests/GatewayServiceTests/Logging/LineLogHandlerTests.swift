import Foundation
import GatewayHTTP
import Logging
import NIOCore
import Testing

@testable import GatewayService

struct LineLogHandlerTests {
    /// The lines that a body logs with a configuration.
    private static func lines(
        _ configuration: LogConfiguration = LogConfiguration(),
        _ body: (Logger, LogLevelSetting) -> Void
    ) throws -> [String] {
        let pipe = Pipe()
        let output = LogOutput(pipe.fileHandleForWriting, timeout: .seconds(600)) { _ in ByteBuffer() }
        let levels = LogLevelSetting(configuration)
        let shared = LineLogHandler.Shared(
            levels: levels,
            format: configuration.lineFormat(environment: [:], isTerminal: false),
            clock: LogClock(),
            output: output
        )
        let logger = Logger(label: "gateway") { LineLogHandler(label: $0, shared: shared) }
        body(logger, levels)
        logger.flush()
        try pipe.fileHandleForWriting.close()
        let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
        return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    private static func object(_ line: String) throws -> [String: String] {
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: String]
        return try #require(object)
    }

    @Test("Each part is logged at its own level, or at the general one")
    func parts() throws {
        let configuration = LogConfiguration(level: .warning, levels: [.upstream: .debug, .audit: .error])
        let lines = try Self.lines(configuration) { logger, _ in
            for part in LogConfiguration.Part.allCases {
                let logger = logger.part(part)
                logger.debug("debug")
                logger.warning("warning")
                logger.error("error")
            }
            Logger(label: "elsewhere") { _ in logger.handler }.info("general")
        }
        let found = try lines.map(Self.object).map { "\($0["logger"] ?? "") \($0["message"] ?? "")" }
        let expected = [
            "access warning", "access error", "http warning", "http error", "upstream debug", "upstream warning",
            "upstream error", "audit error", "state warning", "state error", "gateway warning", "gateway error",
        ]
        #expect(found == expected)
    }

    @Test("A change of the levels applies to existing loggers")
    func change() throws {
        let lines = try Self.lines { logger, levels in
            let upstream = logger.part(.upstream)
            upstream.debug("1")
            levels.change(to: LogConfiguration(level: .error, levels: [.upstream: .trace]))
            upstream.trace("2")
            logger.warning("3")
            levels.change(to: LogConfiguration())
            upstream.debug("4")
            logger.info("5")
        }
        #expect(try lines.map(Self.object).map { $0["message"] } == ["2", "5"])
    }

    @Test("Metadata with a reserved name gets a prefix, and inner metadata overrides outer")
    func metadata() throws {
        let lines = try Self.lines { logger, _ in
            var logger = logger
            logger[metadataKey: "a"] = "outer"
            logger[metadataKey: "b"] = "outer"
            logger.info("message", metadata: ["a": "inner", "level": "forged", "time": "never"])
        }
        let object = try Self.object(try #require(lines.first))
        #expect(object["a"] == "inner" && object["b"] == "outer")
        #expect(object["level"] == "info" && object["metadata_level"] == "forged" && object["metadata_time"] == "never")
        #expect(lines.count == 1)
    }

    @Test("Integer metadata is written as a number, and text of digits stays text")
    func numbers() throws {
        let lines = try Self.lines { logger, _ in
            logger.info(
                "message",
                metadata: [
                    "port": .stringConvertible(8080), "level": .stringConvertible(-1), "tenant": "1", "x": "\(2)",
                ]
            )
        }
        let line = try #require(lines.first)
        #expect(line.hasSuffix(#""metadata_level":-1,"port":8080,"tenant":"1","x":"2"}"#), "\(line)")
    }

    @Test("Only the text format on a terminal is coloured")
    func colour() {
        // `TerminalTests` has the terminals' conditions for colours.
        let text = LogConfiguration(format: .text)
        #expect(text.lineFormat(environment: ["TERM": "xterm"], isTerminal: true) == .text(isColoured: true))
        #expect(text.lineFormat(environment: [:], isTerminal: false) == .text(isColoured: false))
        #expect(LogConfiguration().lineFormat(environment: [:], isTerminal: true) == .json)
    }

    @Test("The time is in UTC with milliseconds and never decreases")
    func time() throws {
        let lines = try Self.lines { logger, _ in
            logger.info("1")
            logger.info("2")
        }
        let times = try lines.map(Self.object).compactMap { $0["time"] }
        #expect(times.count == 2 && times == times.sorted())
        for time in times {
            #expect(time.wholeMatch(of: #/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/#) != nil, "\(time)")
        }
    }
}
