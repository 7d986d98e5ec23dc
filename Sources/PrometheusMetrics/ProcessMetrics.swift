#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The process metrics of Prometheus's client libraries, read from `/proc`.
///
/// Systems without `/proc` have none.
package struct ProcessMetrics: Sendable {
    struct Sample {
        let description: MetricDescription
        let value: Double

        init(_ name: String, _ value: Double, kind: MetricDescription.Kind = .gauge, help: String) {
            self.description = MetricDescription(name: name, help: help, kind: kind)
            self.value = value
        }
    }

    #if os(Linux)
    private static let ticksPerSecond = Double(sysconf(Int32(_SC_CLK_TCK)))
    #endif

    /// Read once: the system computes its start from its clock, so it moves when the clock is set.
    private let startTimeSeconds: Double?

    package init() {
        #if os(Linux)
        let stat = File.text(of: "/proc/self/stat").flatMap(Stat.init(line:))
        let bootTime = File.text(of: "/proc/stat").flatMap(Stat.bootTimeSeconds(stat:))
        if let stat, let bootTime {
            self.startTimeSeconds = Double(bootTime) + Double(stat.startTicks) / Self.ticksPerSecond
        } else {
            self.startTimeSeconds = nil
        }
        #else
        self.startTimeSeconds = nil
        #endif
    }

    #if os(Linux)
    /// The soft limit of open files, readable even when no descriptor is left. Infinity without a limit.
    private static var openFilesLimit: Double? {
        var limits = rlimit()
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let resource = RLIMIT_NOFILE
        #endif
        // The call fills the structure and keeps no reference to it.
        guard unsafe getrlimit(resource, &limits) == 0 else { return nil }
        return limits.rlim_cur == .max ? .infinity : Double(limits.rlim_cur)
    }
    #endif

    func samples() -> [Sample] {
        var samples: [Sample] = []
        #if os(Linux)
        let pageBytes = Double(sysconf(Int32(_SC_PAGESIZE)))
        if let stat = File.text(of: "/proc/self/stat").flatMap(Stat.init(line:)) {
            samples += [
                Sample(
                    "process_cpu_seconds_total",
                    Double(stat.cpuTicks) / Self.ticksPerSecond,
                    kind: .counter,
                    help: "Processor time spent in user and kernel mode, in seconds."
                ),
                Sample(
                    "process_resident_memory_bytes",
                    Double(stat.residentPages) * pageBytes,
                    help: "Memory held in RAM, in bytes."
                ),
                Sample(
                    "process_virtual_memory_bytes",
                    Double(stat.virtualBytes),
                    help: "Address space in use, in bytes."
                ),
            ]
        }
        if let value = self.startTimeSeconds {
            let help = "When the process started, in seconds since the epoch."
            samples.append(Sample("process_start_time_seconds", value, help: help))
        }
        let maximumFiles = Self.openFilesLimit
        // Reading the folder opens a descriptor, which is in the folder too.
        if let entries = File.entryCount(of: "/proc/self/fd"), entries > 0 {
            samples.append(Sample("process_open_fds", Double(entries - 1), help: "Open file descriptors."))
        } else if errno == EMFILE, let maximumFiles {
            // No descriptor was left to read the folder.
            samples.append(Sample("process_open_fds", maximumFiles, help: "Open file descriptors."))
        }
        if let maximumFiles {
            samples.append(Sample("process_max_fds", maximumFiles, help: "File descriptors the process may have open."))
        }
        #endif
        return samples
    }
}

extension ProcessMetrics {
    /// The numbers of `/proc/PID/stat` that become metrics.
    ///
    /// Field numbers are those of proc(5).
    struct Stat: Sendable, Equatable {
        /// Time in user and kernel mode (fields 14 and 15), in clock ticks.
        let cpuTicks: UInt64
        /// The start of the process (field 22), in clock ticks after boot.
        let startTicks: UInt64
        /// Address space (field 23), in bytes.
        let virtualBytes: UInt64
        /// Memory in RAM (field 24), in pages.
        let residentPages: UInt64

        /// Reads the file's only line; nil if it does not follow proc(5).
        init?(line: String) {
            // Field 2 is the program's name in parentheses, which may contain spaces and parentheses itself.
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

        /// Reads the machine's start from `/proc/stat`, in seconds since the epoch.
        static func bootTimeSeconds(stat: String) -> UInt64? {
            for line in stat.split(separator: "\n") where line.hasPrefix("btime ") {
                return UInt64(line.dropFirst("btime ".count))
            }
            return nil
        }
    }
}

#if os(Linux)

extension ProcessMetrics {
    /// Reads the small files and folders of `/proc`.
    enum File {
        /// More bytes than any file read here has, even on machines with hundreds of processors.
        private static let maximumBytes = 1 << 20

        static func text(of path: String) -> String? {
            // POSIX takes the path as a pointer, valid during the call.
            let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { return nil }
            defer { close(descriptor) }
            var bytes: [UInt8] = []
            // These files report no size, so they are read to their end.
            var chunk = [UInt8](repeating: 0, count: 16_384)
            while bytes.count < Self.maximumBytes {
                let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
                if count < 0 {
                    guard errno == EINTR else { return nil }
                    continue
                }
                guard count > 0 else { break }
                bytes.append(contentsOf: chunk[..<count])
            }
            return String(decoding: bytes, as: UTF8.self)
        }

        /// Counts a folder's entries; nil if it can't be read.
        static func entryCount(of path: String) -> Int? {
            // POSIX owns the stream. It is closed before this function returns.
            guard let folder = unsafe opendir(path) else { return nil }
            defer { unsafe closedir(folder) }
            var count = 0
            while let entry = unsafe readdir(folder) {
                // The entries `.` and `..` are not the process's.
                if unsafe entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) {
                    count += 1
                }
            }
            return count
        }
    }
}

#endif
