import Foundation
import Logging
import NIOCore
import StrictJSON
import Testing

@testable import GatewayService

struct LogLineTests {
    private static let time = Array("2026-11-21T12:00:00.000Z".utf8)

    private static func line(_ format: LogLine.Format, _ name: String, _ text: String) -> String {
        var line = LogLine(format, time: Self.time, level: .info, logger: "http", message: "Request answered")
        line.add(name, text)
        line.add(plain: "status", 200)
        return String(buffer: line.finish().buffer)
    }

    @Test("A JSON line is an object with the time first")
    func json() {
        #expect(
            Self.line(.json, "route", "/fcm/send")
                == #"{"time":"2026-11-21T12:00:00.000Z","level":"info","logger":"http","message":"Request answered","#
                + #""route":"/fcm/send","status":200}"# + "\n"
        )
    }

    @Test("A text line quotes values that are empty or hold spaces or equals signs")
    func text() {
        let start = "2026-11-21T12:00:00.000Z info    http: Request answered"
        #expect(Self.line(.text(isColoured: false), "a", "b") == "\(start) a=b status=200\n")
        #expect(Self.line(.text(isColoured: false), "a", "b c") == "\(start) a=\"b c\" status=200\n")
        #expect(Self.line(.text(isColoured: false), "a", "") == "\(start) a=\"\" status=200\n")
        #expect(Self.line(.text(isColoured: false), "a", "b=c") == "\(start) a=\"b=c\" status=200\n")
        #expect(
            Self.line(.text(isColoured: true), "a", "b")
                .hasPrefix("2026-11-21T12:00:00.000Z \u{1B}[32minfo\u{1B}[0m    http: Request answered")
        )
    }

    @Test(
        "No name or value can end a line, begin another or control a terminal",
        arguments: [
            "a\nb", "a\r\n{\"level\":\"error\"}", "\u{0}\u{1}\u{1F}\u{7F}", "\u{1B}[31mred", "\u{85}\u{9B}31m",
            "\u{2028}\u{2029}", "\u{202E}drawkcab", "\"", "\\", "\\n", "\"}\n{\"", "ä€😀", "\t tab", "a=b c=d",
            "\u{FEFF}", "\u{2066}x\u{2069}", "\u{61C}\u{AD}\u{200B}\u{2060}", "\u{E0041}\u{1D173}",
        ]
    )
    func injection(text: String) throws {
        for format in [LogLine.Format.json, .text(isColoured: false)] {
            for line in [Self.line(format, "a", text), Self.line(format, text, "a")] {
                #expect(line.last == "\n")
                for scalar in line.dropLast().unicodeScalars {
                    #expect(scalar.properties.generalCategory != .control)
                    #expect(scalar.properties.generalCategory != .lineSeparator)
                    #expect(scalar.properties.generalCategory != .paragraphSeparator)
                    #expect(scalar.properties.generalCategory != .format)
                }
            }
        }
        let object = try JSONSerialization.jsonObject(with: Data(Self.line(.json, "a", text).utf8)) as? [String: Any]
        #expect(object?["a"] as? String == text)
        #expect(object?.count == 6)
        let named = try JSONSerialization.jsonObject(with: Data(Self.line(.json, text, "a").utf8)) as? [String: Any]
        #expect(named?[text] as? String == "a")
        // The value can be decoded from a text line too.
        let words = Self.line(.text(isColoured: false), "a", text)
        let value = try #require(words.firstRange(of: " a=").map { words[$0.upperBound...] })
        let quoted = try #require(value.firstRange(of: " status=").map { String(value[..<$0.lowerBound]) })
        let decoded = quoted.hasPrefix("\"") ? try JSONDecoder().decode(String.self, from: Data(quoted.utf8)) : quoted
        #expect(decoded == text)
    }

    @Test("Random text can be decoded from a JSON line unchanged", arguments: 0..<20)
    func random(seed: Int) throws {
        for _ in 0..<50 {
            let scalars = (0..<20)
                .compactMap { _ in
                    Unicode.Scalar(UInt32.random(in: 0..<(Bool.random() ? 0x300 : 0x11_0000)))
                }
            let text = String(String.UnicodeScalarView(scalars))
            let line = Self.line(.json, "a", text)
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            let found = try #require(object?["a"] as? String)
            #expect(Array(found.unicodeScalars) == Array(text.unicodeScalars))
        }
    }
}
