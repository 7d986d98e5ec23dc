import NIOCore
import Testing

@testable import RedisClient

@Suite("RESPParser")
struct RESPParserTests {
    private static func read(
        _ pieces: [String],
        _ limits: RESPParser.Limits = RESPParser.Limits()
    ) throws -> [RESPValue] {
        var parser = RESPParser(limits: limits)
        var bytes = ByteBuffer()
        var values: [RESPValue] = []
        for piece in pieces {
            bytes.writeString(piece)
            while let value = try parser.next(from: &bytes) { values.append(value) }
        }
        return values
    }

    @Test(
        "The parser reads every type of RESP2 and RESP3",
        arguments: [
            ("+OK\r\n", .status("OK")),
            ("+\r\n", .status("")),
            ("-NOSCRIPT No matching script\r\n", .error("NOSCRIPT No matching script")),
            (":-42\r\n", .integer(-42)),
            (":+7\r\n", .integer(7)),
            ("$5\r\nhello\r\n", .bytes(Array("hello".utf8))),
            ("$0\r\n\r\n", .bytes([])),
            ("$2\r\n\r\n\r\n", .bytes([13, 10])),
            ("$-1\r\n", .null),
            ("*-1\r\n", .null),
            ("*0\r\n", .array([])),
            ("*2\r\n:1\r\n*1\r\n$1\r\na\r\n", .array([.integer(1), .array([.bytes([97])])])),
            ("_\r\n", .null),
            ("#t\r\n", .boolean(true)),
            ("#f\r\n", .boolean(false)),
            (",1.5e3\r\n", .double(1_500)),
            (",-inf\r\n", .double(-.infinity)),
            (
                "(3492890328409238509324850943850943825024385\r\n",
                .bigNumber("3492890328409238509324850943850943825024385")
            ),
            ("!10\r\nSYNTAX bad\r\n", .error("SYNTAX bad")),
            ("=8\r\ntxt:Some\r\n", .bytes(Array("Some".utf8))),
            ("%1\r\n+a\r\n:1\r\n", .map([.status("a"), .integer(1)])),
            ("~2\r\n:1\r\n:2\r\n", .array([.integer(1), .integer(2)])),
            (">2\r\n+invalidate\r\n_\r\n", .push([.status("invalidate"), .null])),
            ("|1\r\n+ttl\r\n:3\r\n:5\r\n", .integer(5)),
            ("*2\r\n|1\r\n+a\r\n*0\r\n:1\r\n:2\r\n", .array([.integer(1), .integer(2)])),
        ] as [(String, RESPValue)]
    )
    func types(text: String, value: RESPValue) throws {
        #expect(try Self.read([text]) == [value])
        #expect(try Self.read(text.unicodeScalars.map { String($0) }) == [value])
        #expect(try Self.read([text + text]) == [value, value])
    }

    @Test(
        "A malformed reply is refused, both whole and byte by byte",
        arguments: [
            "\r\n", "OK\r\n", "+OK\n", "+O\rK\r\n", ":\r\n", ":1a\r\n", ":9223372036854775808\r\n", ":--1\r\n",
            "$-2\r\n",
            "$+\r\n", "$?\r\n", "$1\r\nab\r\n", "!-1\r\n", "=3\r\ntxt\r\n", "=8\r\ntext:abc\r\n", "~-1\r\n", "%-1\r\n",
            "_x\r\n", "#x\r\n", ",0x1\r\n", ",\r\n", "(1.5\r\n", "*1\r\n>1\r\n+a\r\n",
        ]
    )
    func malformed(text: String) {
        #expect(throws: RESPError.malformed) { try Self.read([text]) }
        #expect(throws: RESPError.malformed) { try Self.read(text.unicodeScalars.map { String($0) }) }
    }

    @Test(
        "A reply beyond a limit is refused before all of it has arrived",
        arguments: [
            "$11\r\n", "$9223372036854775807\r\n", "*9\r\n", "*9223372036854775807\r\n", "%5\r\n",
            "*1\r\n*1\r\n*1\r\n*1\r\n", "*2\r\n*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n*4\r\n",
            "+" + String(repeating: "a", count: 40),
            "*2\r\n$10\r\n0123456789\r\n$6\r\n", String(repeating: "|0\r\n", count: 9),
        ]
    )
    func bounds(text: String) {
        let limits = RESPParser.Limits(depth: 3, stringBytes: 10, lineBytes: 32, elements: 8, replyBytes: 15)
        #expect(throws: RESPError.tooLarge) { try Self.read([text], limits) }
        #expect(throws: RESPError.tooLarge) { try Self.read(text.unicodeScalars.map { String($0) }, limits) }
    }
}
