import Logging

/// One line of the log while it is being written.
///
/// Nothing that a line tells can end it or begin another: whatever is no plain text is escaped.
struct LogLine {
    private let format: LogLineFormat
    private var bytes: [UInt8] = []

    /// Begins a line.
    ///
    /// - Parameters:
    ///   - format: how it looks.
    ///   - time: the moment in RFC 3339 form.
    ///   - level: how severe it is.
    ///   - logger: the name of its logger.
    ///   - message: what has happened.
    init(_ format: LogLineFormat, time: [UInt8], level: Logger.Level, logger: String, message: String) {
        self.format = format
        self.bytes.reserveCapacity(512)
        switch format {
        case .json:
            self.bytes.append(contentsOf: "{\"time\":\"".utf8)
            self.bytes += time
            self.bytes.append(contentsOf: "\",\"level\":\"".utf8)
            self.bytes.append(contentsOf: level.rawValue.utf8)
            self.bytes.append(contentsOf: "\"".utf8)
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

    /// Adds a field of text by any name.
    mutating func add(_ name: String, _ text: String) {
        var escaped: [UInt8] = []
        switch self.format {
        case .json: LogText.append(name, to: &escaped)
        case .text: LogText.appendWord(name, to: &escaped)
        }
        self.begin(escaped)
        self.end(text)
    }

    /// Adds a field of text by one of the gateway's own names, which are plain words.
    mutating func add(plain name: String, _ text: String) {
        self.begin(name.utf8)
        self.end(text)
    }

    /// Adds a field of a whole number by one of the gateway's own names.
    mutating func add(plain name: String, _ number: Int) {
        self.begin(name.utf8)
        self.bytes.append(contentsOf: String(number).utf8)
    }

    private mutating func end(_ text: String) {
        switch self.format {
        case .json: LogText.appendQuoted(text, to: &self.bytes)
        case .text: LogText.appendWord(text, to: &self.bytes)
        }
    }

    /// Ends the line.
    ///
    /// - Returns: its bytes, the line's end among them.
    consuming func finish() -> [UInt8] {
        if case .json = self.format { self.bytes.append(UInt8(ascii: "}")) }
        self.bytes.append(UInt8(ascii: "\n"))
        return self.bytes
    }

    /// Begins a field; its name is escaped as far as it has to be.
    private mutating func begin(_ name: some Sequence<UInt8>) {
        switch self.format {
        case .json:
            // Byte by byte, which costs a tenth of what short texts cost.
            self.bytes.append(UInt8(ascii: ","))
            self.bytes.append(UInt8(ascii: "\""))
            self.bytes.append(contentsOf: name)
            self.bytes.append(UInt8(ascii: "\""))
            self.bytes.append(UInt8(ascii: ":"))
        case .text:
            self.bytes.append(UInt8(ascii: " "))
            self.bytes.append(contentsOf: name)
            self.bytes.append(UInt8(ascii: "="))
        }
    }
}

extension Logger.Level {
    /// The sequence that has a terminal write the level's name in its colour.
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
