# A loop of integers, strings, hashes, blocks and regular expressions, for JRuby. Answers as Counter.java does.
def fibonacci(n)
  n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2)
end

def words(seed)
  random = Random.new(seed)
  (1..2000).map { "word#{random.rand(500)}" }.each_with_object(Hash.new(0)) { |word, count| count[word] += 1 }
end

def once(round)
  sum = fibonacci(16)
  counted = words(round % 50).sort_by { |word, count| [-count, word] }.first(20)
  text = counted.map { |word, count| "#{word}=#{count}" }.join(";")
  sum + text.scan(/word(\d+)=(\d+)/).sum { |number, count| number.to_i * count.to_i }
end

$done = 0
Thread.new do
  loop do
    once($done)
    $done += 1
  end
end
STDOUT.sync = true
puts "READY"
puts "OPS #{$done} #{Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)}" while STDIN.getbyte
