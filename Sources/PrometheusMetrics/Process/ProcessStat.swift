/// The numbers of `/proc/PID/stat` that become metrics.
///
/// Field numbers are those of proc(5).
struct ProcessStat: Sendable, Equatable {
    /// Time in user and kernel mode (fields 14 and 15), in clock ticks.
    let cpuTicks: UInt64

    /// When the process started (field 22), in clock ticks after boot.
    let startTicks: UInt64

    /// Address space (field 23), in bytes.
    let virtualBytes: UInt64

    /// Memory in RAM (field 24), in pages.
    let residentPages: UInt64

    /// Reads the file's one line; nil if it is not as proc(5) says.
    init?(line: String) {
        // Field 2 is the program's name in parentheses, which may hold spaces and parentheses of its own.
        guard let nameEnd = line.lastIndex(of: ")") else { return nil }
        let fields = line[line.index(after: nameEnd)...].split { $0 == " " || $0 == "\n" }
        func field(_ number: Int) -> UInt64? {
            let index = number - 3
            return index < fields.count ? UInt64(fields[index]) : nil
        }
        guard
            let userTicks = field(14), let kernelTicks = field(15), let startTicks = field(22),
            let virtualBytes = field(23), let residentPages = field(24)
        else { return nil }
        self.cpuTicks = userTicks + kernelTicks
        self.startTicks = startTicks
        self.virtualBytes = virtualBytes
        self.residentPages = residentPages
    }

    /// Reads when the machine was started from `/proc/stat`, in seconds since the epoch.
    static func bootTimeSeconds(stat: String) -> UInt64? {
        for line in stat.split(separator: "\n") where line.hasPrefix("btime ") {
            return UInt64(line.dropFirst("btime ".count))
        }
        return nil
    }
}
