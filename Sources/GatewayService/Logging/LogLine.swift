import GatewayCore
import Logging
import StrictJSON
import Synchronization

/// One line of the log while it is being written.
///
/// Everything except plain text is escaped, so no content can end a line or begin another one.
struct LogLine: ~Copyable {
    enum Format: Sendable, Hashable {
        case json
        case text(isColoured: Bool)
    }

    private let format: Format
    private var bytes = UniqueBytes(reservingCapacity: 640)

    init(_ format: Format, time: [UInt8], level: Logger.Level, logger: String, message: String) {
        self.format = format
        switch format {
        case .json:
            self.bytes.append("{\"time\":\"")
            self.bytes.append(time.span)
            self.bytes.append("\",\"level\":\"")
            self.bytes.append(utf8: level.rawValue)
            self.bytes.append(UInt8(ascii: "\""))
            self.add(plain: "logger", logger)
            self.add(plain: "message", message)
        case .text(let isColoured):
            self.bytes.append(time.span)
            self.bytes.append(" ")
            let name = level.rawValue
            let padding = String(repeating: " ", count: max(0, 8 - name.utf8.count))
            self.bytes.append(utf8: isColoured ? "\(level.colour)\(name)\u{1B}[0m" : name)
            self.bytes.append(utf8: padding)
            LogText.append(logger, to: &self.bytes)
            self.bytes.append(": ")
            LogText.append(message, to: &self.bytes)
        }
    }

    mutating func add(_ name: String, _ text: String) {
        self.append(name: name)
        self.appendValue(text)
    }

    mutating func add(_ name: String, _ number: Int) {
        self.append(name: name)
        self.bytes.append(decimal: number)
    }

    /// Adds a text field under one of the gateway's own names, which are plain words.
    mutating func add(plain name: StaticString, _ text: String) {
        self.append(plain: name)
        self.appendValue(text)
    }

    mutating func add(plain name: StaticString, _ number: Int) {
        self.append(plain: name)
        self.bytes.append(decimal: number)
    }

    /// The whole line.
    consuming func finish() -> UniqueBytes {
        if case .json = self.format { self.bytes.append("}") }
        self.bytes.append("\n")
        return self.bytes
    }

    private mutating func append(plain name: StaticString) {
        switch self.format {
        case .json:
            self.bytes.append(nextName: name)
        case .text:
            self.bytes.append(" ")
            self.bytes.append(name)
            self.bytes.append("=")
        }
    }

    private mutating func append(name: String) {
        switch self.format {
        case .json:
            self.bytes.append(",\"")
            LogText.append(name, to: &self.bytes)
            self.bytes.append("\":")
        case .text:
            self.bytes.append(" ")
            LogText.appendWord(name, to: &self.bytes)
            self.bytes.append("=")
        }
    }

    private mutating func appendValue(_ text: String) {
        switch self.format {
        case .json: LogText.appendQuoted(text, to: &self.bytes)
        case .text: LogText.appendWord(text, to: &self.bytes)
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
    static func appendQuoted(_ text: String, to bytes: inout UniqueBytes) {
        bytes.append(UInt8(ascii: "\""))
        Self.append(text, to: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }

    /// Appends text as one word. Quotes the text unless it is a single word.
    static func appendWord(_ text: String, to bytes: inout UniqueBytes) {
        let isWord =
            !text.isEmpty && text.utf8.span.isPlainText
            && text.utf8.allSatisfy { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "=") }
        if isWord {
            bytes.append(utf8: text)
        } else {
            Self.appendQuoted(text, to: &bytes)
        }
    }

    /// Appends text. Escapes quotes, backslashes, and everything that a reader could treat as a line end or a command.
    static func append(_ text: String, to bytes: inout UniqueBytes) {
        // Nearly all texts are plain.
        var isPlain = false
        text.withUTF8Span { span in
            isPlain = span.isPlainText
            if isPlain { bytes.append(span) }
        }
        if isPlain { return }
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\":
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(UInt8(scalar.value))
            case "\n":
                bytes.append("\\n")
            case _ where Self.needsEscape(scalar):
                for unit in String(scalar).utf16 {
                    bytes.append("\\u")
                    for shift in [12, 8, 4, 0] as [UInt16] { bytes.append(Hex.digits[Int(unit >> shift & 0xF)]) }
                }
            default:
                bytes.append(utf8: String(scalar))
            }
        }
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
