import GatewayCore
import Logging
import Synchronization

/// One line of the log while it is being written.
///
/// Everything except plain text is escaped, so no content can end a line or begin another one.
struct LogLine {
    enum Format: Sendable, Hashable {
        case json
        case text(isColoured: Bool)
    }

    private let format: Format
    private var bytes: [UInt8] = []

    init(_ format: Format, time: [UInt8], level: Logger.Level, logger: String, message: String) {
        self.format = format
        self.bytes.reserveCapacity(512)
        switch format {
        case .json:
            self.bytes.append(utf8: "{\"time\":\"")
            self.bytes += time
            self.bytes.append(utf8: "\",\"level\":\"")
            self.bytes.append(utf8: level.rawValue)
            self.bytes.append(UInt8(ascii: "\""))
            self.add(plain: "logger", logger)
            self.add(plain: "message", message)
        case .text(let isColoured):
            self.bytes += time
            self.bytes.append(contentsOf: " ".utf8)
            let name = level.rawValue
            let padding = String(repeating: " ", count: max(0, 8 - name.utf8.count))
            self.bytes.append(contentsOf: (isColoured ? "\(level.colour)\(name)\u{1B}[0m" : name).utf8)
            self.bytes.append(contentsOf: padding.utf8)
            LogText.append(logger, to: &self.bytes)
            self.bytes.append(contentsOf: ": ".utf8)
            LogText.append(message, to: &self.bytes)
        }
    }

    mutating func add(_ name: String, _ text: String) {
        self.begin(escaping: name)
        self.end(text)
    }

    mutating func add(_ name: String, _ number: Int) {
        self.begin(escaping: name)
        self.bytes.append(decimal: number)
    }

    /// Adds a text field under one of the gateway's own names, which are plain words.
    mutating func add(plain name: String, _ text: String) {
        self.begin { $0.append(utf8: name) }
        self.end(text)
    }

    mutating func add(plain name: String, _ number: Int) {
        self.begin { $0.append(utf8: name) }
        self.bytes.append(decimal: number)
    }

    private mutating func end(_ text: String) {
        switch self.format {
        case .json: LogText.appendQuoted(text, to: &self.bytes)
        case .text: LogText.appendWord(text, to: &self.bytes)
        }
    }

    consuming func finish() -> [UInt8] {
        if case .json = self.format { self.bytes.append(UInt8(ascii: "}")) }
        self.bytes.append(UInt8(ascii: "\n"))
        return self.bytes
    }

    private mutating func begin(escaping name: String) {
        let format = self.format
        self.begin { bytes in
            switch format {
            case .json: LogText.append(name, to: &bytes)
            case .text: LogText.appendWord(name, to: &bytes)
            }
        }
    }

    /// Begins a field. Escapes the field's name if necessary.
    private mutating func begin(_ writeName: (inout [UInt8]) -> Void) {
        switch self.format {
        case .json:
            // Copying byte by byte costs a tenth of creating short strings.
            self.bytes.append(UInt8(ascii: ","))
            self.bytes.append(UInt8(ascii: "\""))
            writeName(&self.bytes)
            self.bytes.append(UInt8(ascii: "\""))
            self.bytes.append(UInt8(ascii: ":"))
        case .text:
            self.bytes.append(UInt8(ascii: " "))
            writeName(&self.bytes)
            self.bytes.append(UInt8(ascii: "="))
        }
    }
}

extension Logger.Level {
    fileprivate var colour: String {
        switch self {
        case .trace, .debug: "\u{1B}[2m"
        case .info: "\u{1B}[32m"
        case .notice: "\u{1B}[36m"
        case .warning: "\u{1B}[33m"
        case .error, .critical: "\u{1B}[31m"
        }
    }
}

/// Writes texts so that they stay within one line.
private enum LogText {
    static func appendQuoted(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        Self.append(text, to: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }

    /// Appends text as one word. Quotes the text unless it is a single word.
    static func appendWord(_ text: String, to bytes: inout [UInt8]) {
        let isWord = !text.isEmpty && text.utf8.allSatisfy { Self.isPlain($0) && $0 != 0x20 && $0 != UInt8(ascii: "=") }
        if isWord {
            bytes += text.utf8
        } else {
            Self.appendQuoted(text, to: &bytes)
        }
    }

    /// Appends text. Escapes quotes, backslashes, and everything that a reader could treat as a line end or a command.
    static func append(_ text: String, to bytes: inout [UInt8]) {
        let start = bytes.count
        // Nearly all texts are plain, so they are copied first and then checked in place.
        bytes.append(utf8: text)
        if Self.isPlain(bytes.span, from: start) { return }
        bytes.removeSubrange(start...)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\":
                bytes += [UInt8(ascii: "\\"), UInt8(scalar.value)]
            case "\n":
                bytes += [UInt8(ascii: "\\"), UInt8(ascii: "n")]
            case _ where Self.needsEscape(scalar):
                for unit in String(scalar).utf16 {
                    bytes += [UInt8(ascii: "\\"), UInt8(ascii: "u")]
                    for shift in [12, 8, 4, 0] as [UInt16] { bytes.append(Hex.digits[Int(unit >> shift & 0xF)]) }
                }
            default:
                bytes += UTF8.encode(scalar).map { Array($0) } ?? []
            }
        }
    }

    private static func isPlain(_ bytes: Span<UInt8>, from start: Int) -> Bool {
        var index = start
        while index < bytes.count {
            guard Self.isPlain(bytes[index]) else { return false }
            index += 1
        }
        return true
    }

    /// True for printable ASCII without a special meaning in JSON.
    private static func isPlain(_ byte: UInt8) -> Bool {
        (0x20..<0x7F).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    /// True for control characters, other line ends, and invisible characters such as marks of the writing direction.
    private static func needsEscape(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}

/// The time in log lines. The text of each second is created once.
final class LogClock: Sendable {
    private struct Second {
        var number = Int.min
        /// The text up to the dot before the milliseconds.
        var text: [UInt8] = []
    }

    private let clock: any WallClock
    private let second = Mutex(Second())

    init(_ clock: any WallClock = SystemWallClock()) {
        self.clock = clock
    }

    /// The moment in RFC 3339 form, UTC, with milliseconds.
    func now() -> [UInt8] {
        let now = self.clock.now()
        var bytes = self.second.withLock { second in
            if second.number != now.seconds {
                second = Second(number: now.seconds, text: Array(now.rfc3339.utf8.dropLast(4)))
            }
            return second.text
        }
        let milliseconds = Int(now.milliseconds - Int64(now.seconds) * 1_000)
        for divisor in [100, 10, 1] { bytes.append(UInt8(ascii: "0") + UInt8(milliseconds / divisor % 10)) }
        bytes.append(UInt8(ascii: "Z"))
        return bytes
    }
}
